// The Python class gompfs._native.blocks.BlockReader: converts arguments and releases the
// interpreter's lock. The work is done in native/blocks; gompfs/_native/blocks.pyi documents every
// function.
#include "blocks/block_reader.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/columns.h"
#include "blocks/block_source.h"
#include "common/buffer_view.h"
#include "common/decode_work.h"
#include "common/held_bytes.h"
#include "common/parallel.h"
#include "fuse/index_columns.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using Extents = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>;

// Copies blocks that another engine decoded into the cache. Gives up the blocks for which there is
// no memory.
void insert(BlockReader& reader, const std::vector<std::uint64_t>& numbers, nb::sequence contents,
            unsigned num_threads) {
    std::vector<BufferView> views;
    for (const nb::handle content : contents) {
        views.emplace_back(content, PyBUF_SIMPLE);
        if (views.back().bytes().size() > reader.block_size()) {
            throw nb::value_error("the content is larger than a block");
        }
    }
    if (views.size() != numbers.size()) {
        throw nb::value_error("the number of block numbers differs from the number of contents");
    }
    const nb::gil_scoped_release release;
    parallel_for(views.size(), num_threads, [&](std::size_t index) {
        const auto bytes = views[index].bytes();
        try {
            // Reuses the memory of a block that an insert before has evicted.
            BlockCache::Block block = reader.cache.make();
            std::copy(bytes.begin(), bytes.end(), block->resize(bytes.size()).begin());
            reader.cache.insert(numbers[index], std::move(block));
        } catch (const std::bad_alloc&) {
            reader.cache.give_up(numbers[index]);
        }
    });
}

using Place = std::tuple<std::uint64_t, std::uint64_t, nb::object, nb::object>;

template <typename Value>
std::vector<Value> values_of(nb::handle column) {
    const BufferView view(column, PyBUF_SIMPLE);
    std::vector<Value> values(view.bytes().size() / sizeof(Value));
    std::memcpy(values.data(), view.bytes().data(), values.size() * sizeof(Value));
    return values;
}

// Each segment: first block, uncompressed size, archive_offsets (u64), compressed_sizes (u32).
void read_from(BlockReader& reader, int descriptor, const std::vector<Place>& segments, bool verify,
               std::shared_ptr<DecodeWork> work) {
    std::vector<StoredSegment> stored;
    for (const auto& [first_block, uncompressed_size, offsets, sizes] : segments) {
        stored.push_back({first_block, uncompressed_size, values_of<std::uint64_t>(offsets),
                          values_of<std::uint32_t>(sizes)});
    }
    reader.read_from(std::make_shared<BlockSource>(descriptor, reader.block_size(),
                                                   std::move(stored), verify, std::move(work)));
}

// Returns the blocks from `first` on as memory views, as many as are cached or can be decoded here.
nb::list find_or_load(BlockReader& reader, std::uint64_t first, std::uint64_t end) {
    std::vector<BlockCache::Block> blocks;
    {
        const nb::gil_scoped_release release;
        std::uint64_t hits = 0;
        blocks = reader.find_or_load(first, end, hits);
        reader.num_hits.fetch_add(hits, std::memory_order_relaxed);
    }
    nb::list views;
    for (BlockCache::Block& block : blocks) {
        const auto bytes = block->bytes();
        // The views are read-only.
        auto* const data = const_cast<std::uint8_t*>(bytes.data());
        views.append(view_of({data, bytes.size(), true, std::move(block)}));
    }
    return views;
}

bool decode_into(BlockReader& reader, std::uint64_t stream_offset, nb::handle out,
                 unsigned num_threads) {
    const BufferView view(out, PyBUF_WRITABLE);
    const nb::gil_scoped_release release;
    return reader.decode_into(stream_offset, view.mutable_bytes(), num_threads);
}

void add_file(BlockReader& reader, std::uint64_t node, std::uint64_t size, const Extents& extents) {
    FileLayout layout{size, {}};
    for (const auto& [file_offset, stream_offset, extent_size] : extents) {
        layout.extents.push_back({file_offset, stream_offset, extent_size});
    }
    reader.add_files({{node, std::move(layout)}});
}

std::optional<std::vector<std::uint64_t>> wait_ahead(BlockReader& reader, std::uint64_t max_ahead) {
    const nb::gil_scoped_release release;
    reader.max_ahead.store(max_ahead);
    return reader.read_ahead.wait();
}

void add_columns(BlockReader& reader, const Columns& columns, std::uint64_t end) {
    if (columns.empty()) {
        return;
    }
    LayoutColumns views;
    for (std::size_t index = 0; index < views.size(); ++index) {
        views[index] = text_of(columns, index);
    }
    const nb::gil_scoped_release release;
    reader.add_files(read_layouts(views, end));
}

nb::tuple times_of(const LatencyHistogram& histogram) {
    const LatencyHistogram::Counts counts = histogram.counts();
    return nb::make_tuple(std::vector<std::uint64_t>(counts.begin(), counts.end()),
                          static_cast<double>(histogram.total_nanoseconds()) * 1e-9);
}

nb::dict request_times(const BlockReader& reader) {
    const RequestTimes& times = reader.times;
    nb::dict all;
    all[nb::make_tuple("read", "fast")] = times_of(times.reads_here);
    all[nb::make_tuple("read", "slow")] = times_of(times.reads_forwarded);
    all[nb::make_tuple("other", "fast")] = times_of(times.others_here);
    all[nb::make_tuple("other", "slow")] = times_of(times.others_forwarded);
    return all;
}

}  // namespace

void bind_block_reader(nb::module_& module) {
    nb::class_<BlockReader>(module, "BlockReader")
        .def(nb::init<std::uint64_t, std::uint64_t, std::uint64_t>(), "num_blocks"_a,
             "block_size"_a, "capacity"_a)
        .def("read_from", &gompfs::read_from, "descriptor"_a, "segments"_a, "verify"_a, "work"_a)
        .def("find_or_load", &gompfs::find_or_load, "first"_a, "end"_a)
        .def("load", &BlockReader::load, nb::call_guard<nb::gil_scoped_release>(), "numbers"_a,
             "num_threads"_a)
        .def("decode_into", &gompfs::decode_into, "stream_offset"_a, "out"_a, "num_threads"_a)
        .def(
            "claim",
            [](BlockReader& reader, std::uint64_t number) { return reader.cache.claim(number); },
            "number"_a)
        .def("insert", &gompfs::insert, "numbers"_a, "contents"_a, "num_threads"_a = 1)
        .def(
            "give_up",
            [](BlockReader& reader, std::uint64_t number) { reader.cache.give_up(number); },
            "number"_a)
        .def(
            "wait", [](BlockReader& reader, std::uint64_t number) { reader.cache.wait(number); },
            nb::call_guard<nb::gil_scoped_release>(), "number"_a)
        .def(
            "__contains__",
            [](BlockReader& reader, std::uint64_t number) { return reader.cache.contains(number); },
            "number"_a)
        .def("__len__", [](BlockReader& reader) { return reader.cache.size(); })
        .def("set_capacity", &BlockReader::set_capacity, "capacity"_a)
        .def("clear", [](BlockReader& reader) { reader.cache.clear(); })
        .def(
            "note",
            [](BlockReader& reader, std::uint64_t node, std::uint64_t stream_offset,
               std::uint64_t size, std::uint64_t max_ahead) {
                reader.max_ahead.store(max_ahead);
                return reader.read_ahead.note({node, stream_offset, size}, max_ahead);
            },
            "node"_a, "stream_offset"_a, "size"_a, "max_ahead"_a)
        .def("wait_ahead", &gompfs::wait_ahead, "max_ahead"_a)
        .def("close", &BlockReader::close)
        .def("add_file", &gompfs::add_file, "node"_a, "size"_a, "extents"_a)
        .def("add_columns", &gompfs::add_columns, "columns"_a, "end"_a)
        .def("knows", &BlockReader::knows, "node"_a)
        .def(
            "open_files_below",
            [](BlockReader& reader, std::uint64_t size) { reader.open_below.store(size); },
            "size"_a)
        .def(
            "add_read_bytes",
            [](BlockReader& reader, std::uint64_t size) { reader.num_read_bytes += size; },
            "size"_a)
        .def("request_times", &gompfs::request_times)
        .def_prop_ro("num_read_bytes",
                     [](BlockReader& reader) { return reader.num_read_bytes.load(); })
        .def_prop_ro("num_hits", [](BlockReader& reader) { return reader.num_hits.load(); })
        .def_prop_ro("num_misses", [](BlockReader& reader) { return reader.num_misses.load(); });
    module.attr("FIRST_TIME_LOG2") = LatencyHistogram::kFirstLog2;
}

}  // namespace gompfs
