// The Python class gompfs._native.blocks.BlockReader: converts arguments and releases the GIL. The
// work is done in native/blocks; gompfs/_native/blocks.pyi documents every function.
#include "blocks/block_reader.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
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
#include "bindings/buffer_view.h"
#include "bindings/columns.h"
#include "bindings/held_bytes.h"
#include "bindings/values.h"
#include "blocks/block_source.h"
#include "common/decode_work.h"
#include "common/parallel.h"

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

using SegmentColumns = std::tuple<std::uint64_t, nb::object, nb::object, nb::object>;

// Each segment: first block, archive_offsets (u64), compressed_sizes and uncompressed_sizes (u32).
// The columns must have equally many values.
void read_from(BlockReader& reader, int descriptor, const std::vector<SegmentColumns>& segments,
               std::shared_ptr<PartHeads> heads, bool verify, std::shared_ptr<DecodeWork> work) {
    std::vector<StoredSegment> stored;
    for (const auto& [first_block, offsets, sizes, uncompressed_sizes] : segments) {
        stored.push_back({first_block, values_of<std::uint64_t>(offsets),
                          values_of<std::uint32_t>(sizes),
                          values_of<std::uint32_t>(uncompressed_sizes)});
    }
    reader.read_from(std::make_shared<BlockSource>(descriptor, reader.block_size(),
                                                   std::move(stored), std::move(heads), verify,
                                                   std::move(work)));
}

// How many bytes of blocks a Python function decodes in one call by default: a batch of a GPU.
constexpr std::uint64_t kDecodedAtOnce = 32 << 20;

// Calls a Python function that decodes blocks: decode(numbers) -> (contents, statuses).
class PythonDecoder : public BlockDecoder {
  public:
    PythonDecoder(nb::callable decode, std::size_t block_size, std::uint64_t batch_bytes)
        : BlockDecoder(batch_bytes), decode_(std::move(decode)), block_size_(block_size) {}

    void decode(const std::vector<std::uint64_t>& numbers, const Use& use) override {
        const nb::gil_scoped_acquire acquire;
        const nb::object result = decode_(numbers);
        const auto statuses = nb::cast<nb::bytes>(result[1]);
        std::vector<BufferView> views;
        std::vector<Decoded> decoded;
        for (const nb::handle content : nb::cast<nb::sequence>(result[0])) {
            views.emplace_back(content, PyBUF_SIMPLE);
            const auto bytes = views.back().bytes();
            if (bytes.size() > block_size_ || decoded.size() >= statuses.size()) {
                throw nb::value_error("decoded blocks are too large or too many");
            }
            decoded.push_back({bytes, static_cast<BlockStatus>(statuses.c_str()[decoded.size()])});
        }
        if (decoded.size() != numbers.size() || statuses.size() != numbers.size()) {
            throw nb::value_error("the number of decoded blocks is wrong");
        }
        const nb::gil_scoped_release release;
        use(decoded);
    }

  private:
    const nb::callable decode_;
    const std::size_t block_size_;
};

void decode_with(BlockReader& reader, nb::callable decode, unsigned num_threads,
                 std::uint64_t batch_bytes) {
    reader.decode_with(
        std::make_unique<PythonDecoder>(std::move(decode), reader.block_size(), batch_bytes),
        num_threads);
}

FileLayouts layouts_of(const Columns& columns, std::uint64_t end) {
    if (columns.empty()) {
        return {};
    }
    LayoutColumns views;
    for (std::size_t index = 0; index < views.size(); ++index) {
        views[index] = text_of(columns, index);
    }
    return read_layouts(views, end);
}

// Calls a Python function for unknown files: find(ino, alone) -> (columns, end).
void find_layouts_with(BlockReader& reader, nb::callable find) {
    reader.layouts.set_find([find = std::move(find)](std::uint64_t ino, bool alone) {
        const nb::gil_scoped_acquire acquire;
        const auto [columns, end] = nb::cast<std::pair<Columns, std::uint64_t>>(find(ino, alone));
        return layouts_of(columns, end);
    });
}

nb::object read(BlockReader& reader, std::uint64_t ino, std::uint64_t file_offset,
                std::uint64_t size) {
    ReadPieces found;
    const ReadFailure failure = [&] {
        const nb::gil_scoped_release release;
        return reader.read_pieces(ino, file_offset, size, found);
    }();
    if (failure) {
        return nb::cast(failure);
    }
    nb::list views;
    std::size_t block = 0;
    for (const iovec& piece : found.pieces) {
        auto* const data = static_cast<std::uint8_t*>(piece.iov_base);
        const bool is_of_block = block < found.blocks.size() &&
                                 data >= found.blocks[block]->bytes().data() &&
                                 data < found.blocks[block]->bytes().data() + reader.block_size();
        std::shared_ptr<const void> owner;
        if (is_of_block) {
            owner = std::move(found.blocks[block++]);
        }
        views.append(view_of({data, piece.iov_len, true, std::move(owner)}));
    }
    return views;
}

std::optional<ReadFailure> decode_into(BlockReader& reader, std::uint64_t ino,
                                       std::uint64_t file_offset, nb::handle out,
                                       unsigned num_threads, bool use_source) {
    const BufferView view(out, PyBUF_WRITABLE);
    const nb::gil_scoped_release release;
    const ReadFailure failure =
        reader.decode_into(ino, file_offset, view.mutable_bytes(), num_threads, use_source);
    return failure ? std::make_optional(failure) : std::nullopt;
}

nb::object extents(BlockReader& reader, std::uint64_t ino) {
    std::shared_ptr<const FileLayout> file;
    const ReadFailure failure = [&] {
        const nb::gil_scoped_release release;
        return reader.find_file(ino, file);
    }();
    if (failure) {
        return nb::cast(failure);
    }
    Extents extents;
    for (const FileExtent& extent : file->extents) {
        extents.emplace_back(extent.file_offset, extent.stream_offset, extent.size);
    }
    return nb::cast(extents);
}

void add_file(BlockReader& reader, std::uint64_t ino, std::uint64_t size, const Extents& extents) {
    FileLayout layout{size, {}};
    for (const auto& [file_offset, stream_offset, extent_size] : extents) {
        layout.extents.push_back({file_offset, stream_offset, extent_size});
    }
    reader.layouts.add({{ino, std::move(layout)}});
}

void add_columns(BlockReader& reader, const Columns& columns, std::uint64_t end) {
    FileLayouts layouts = layouts_of(columns, end);
    const nb::gil_scoped_release release;
    reader.layouts.add(std::move(layouts));
}

std::optional<std::vector<std::uint64_t>> wait_ahead(BlockReader& reader) {
    const nb::gil_scoped_release release;
    return reader.read_ahead.wait();
}

}  // namespace

void bind_block_reader(nb::module_& module) {
    nb::enum_<ReadFailure::Reason>(module, "FailureReason")
        .value("NO_SUCH_FILE", ReadFailure::Reason::no_such_file)
        .value("IMPOSSIBLE_EXTENTS", ReadFailure::Reason::impossible_extents)
        .value("OUTSIDE_STREAM", ReadFailure::Reason::outside_stream)
        .value("OUTSIDE_SEGMENT", ReadFailure::Reason::outside_segment)
        .value("DAMAGED_BLOCK", ReadFailure::Reason::damaged_block)
        .value("MISSING_BLOCK", ReadFailure::Reason::missing_block);
    nb::class_<ReadFailure>(module, "ReadFailure")
        .def_ro("reason", &ReadFailure::reason)
        .def_ro("block", &ReadFailure::block)
        .def_prop_ro("status", [](const ReadFailure& failure) {
            return static_cast<unsigned>(failure.status);
        });
    nb::class_<BlockReader>(module, "BlockReader")
        .def(nb::init<std::uint64_t, std::uint64_t, std::uint64_t>(), "num_blocks"_a,
             "block_size"_a, "capacity"_a)
        .def("read_from", &gompfs::read_from, "descriptor"_a, "segments"_a, "heads"_a, "verify"_a,
             "work"_a)
        .def("decode_with", &gompfs::decode_with, "decode"_a, "num_threads"_a,
             "batch_bytes"_a = kDecodedAtOnce)
        .def("find_layouts_with", &gompfs::find_layouts_with, "find"_a)
        .def("read", &gompfs::read, "ino"_a, "file_offset"_a, "size"_a)
        .def("decode_into", &gompfs::decode_into, "ino"_a, "file_offset"_a, "out"_a,
             "num_threads"_a, "use_source"_a)
        .def("extents", &gompfs::extents, "ino"_a)
        .def("load", &BlockReader::load, nb::call_guard<nb::gil_scoped_release>(), "numbers"_a,
             "num_threads"_a, "use_source"_a)
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
            [](BlockReader& reader, std::uint64_t ino, std::uint64_t stream_offset,
               std::uint64_t size) {
                return reader.read_ahead.note({ino, stream_offset, size}, reader.max_ahead);
            },
            "ino"_a, "stream_offset"_a, "size"_a)
        .def("wait_ahead", &gompfs::wait_ahead)
        .def_prop_ro("has_wanted",
                     [](BlockReader& reader) { return reader.read_ahead.has_wanted(); })
        .def_prop_rw(
            "max_ahead", [](BlockReader& reader) { return reader.max_ahead.load(); },
            [](BlockReader& reader, std::uint64_t count) { reader.max_ahead = count; })
        .def("close", &BlockReader::close)
        .def("add_file", &gompfs::add_file, "ino"_a, "size"_a, "extents"_a)
        .def("add_columns", &gompfs::add_columns, "columns"_a, "end"_a)
        .def(
            "knows",
            [](BlockReader& reader, std::uint64_t ino) { return reader.layouts.contains(ino); },
            "ino"_a)
        .def_prop_ro("num_hits", [](BlockReader& reader) { return reader.num_hits.load(); })
        .def_prop_ro("num_misses", [](BlockReader& reader) { return reader.num_misses.load(); });
}

}  // namespace gompfs
