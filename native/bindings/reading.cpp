// The Python module gompfs._native.reading: the cache of decoded blocks, the tables of listings and
// replies, and the loop that answers a mount's requests without the interpreter's lock.
//
// The functions here only convert arguments and release the lock; the work is done in the other
// files of this folder. gompfs/_reading.pyi documents every class and function.
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
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "blocks/block_reader.h"
#include "blocks/block_source.h"
#include "blocks/stored_sizes.h"
#include "common/buffer_view.h"
#include "common/decode_work.h"
#include "common/held_bytes.h"
#include "common/parallel.h"
#include "fuse/attributes.h"
#include "fuse/index_columns.h"
#include "fuse/kernel_mount.h"
#include "fuse/listing.h"
#include "fuse/reader_table.h"
#include "fuse/request_loop.h"

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

// Reads the fields of a gompfs.model.Inode.
InodeFields inode_of(nb::handle inode) {
    const auto field = [&](std::size_t index) { return nb::cast<std::int64_t>(inode[index]); };
    InodeFields fields{};
    fields.ino = static_cast<std::uint64_t>(field(0));
    fields.mode = static_cast<std::uint32_t>(field(1));
    fields.uid = static_cast<std::uint32_t>(field(2));
    fields.gid = static_cast<std::uint32_t>(field(3));
    fields.size = static_cast<std::uint64_t>(field(4));
    fields.mtime_ns = field(5);
    fields.nlink = static_cast<std::uint32_t>(field(6));
    fields.rdev = static_cast<std::uint64_t>(field(7));
    return fields;
}

template <typename Value>
nb::bytes bytes_of(const Value& value) {
    return nb::bytes(&value, sizeof value);
}

// If stored_size is absent, the file has no holes.
nb::bytes entry_reply(nb::handle inode, std::uint32_t cache_seconds,
                      std::optional<std::uint64_t> stored_size) {
    fuse_entry_out entry{};
    entry.entry_valid = cache_seconds;
    if (!inode.is_none()) {
        const InodeFields fields = inode_of(inode);
        entry = make_entry(fields, stored_size.value_or(fields.size), cache_seconds);
    }
    return bytes_of(entry);
}

nb::bytes attributes_reply(nb::handle inode, std::uint32_t cache_seconds,
                           std::optional<std::uint64_t> stored_size) {
    const InodeFields fields = inode_of(inode);
    fuse_attr_out reply{};
    reply.attr = make_attributes(fields, stored_size.value_or(fields.size));
    reply.attr_valid = cache_seconds;
    return bytes_of(reply);
}

// `stored_sizes` is indexed by node number.
std::shared_ptr<const Listing> listing_of(std::uint64_t node, nb::iterable children,
                                          std::uint32_t cache_seconds,
                                          const StoredSizes& stored_sizes) {
    const auto listing = std::make_shared<Listing>(node, cache_seconds);
    for (const nb::handle child : children) {
        const auto name = nb::cast<nb::bytes>(child[0]);
        const InodeFields inode = inode_of(child[1]);
        listing->add({name.c_str(), name.size()}, inode, stored_sizes.of(inode.ino, inode.size));
    }
    return listing;
}

nb::bytes entries_of(const Listing& listing, std::uint64_t position, std::size_t room) {
    std::vector<std::uint8_t> packed;
    listing.pack(position, room, packed);
    return nb::bytes(packed.data(), packed.size());
}

nb::bytes pack_listing(std::uint64_t node, nb::iterable children, std::uint32_t cache_seconds,
                       std::uint64_t position, std::size_t room, const StoredSizes& stored_sizes) {
    return entries_of(*listing_of(node, children, cache_seconds, stored_sizes), position, room);
}

std::optional<nb::bytes> kept_listing(ListingTable& table, std::uint64_t node,
                                      std::uint64_t position, std::size_t room) {
    const auto listing = table.use(node);
    return listing ? std::make_optional(entries_of(*listing, position, room)) : std::nullopt;
}

using Columns = std::vector<nb::bytes>;
using MappingFields = std::tuple<std::uint64_t, std::optional<std::uint32_t>,
                                 std::optional<std::uint32_t>, std::uint32_t>;

std::string_view text_of(const Columns& columns, std::size_t index) {
    return {columns.at(index).c_str(), columns.at(index).size()};
}

void insert_columns(ListingTable& table, const Columns& columns, std::uint64_t first,
                    std::uint64_t end, const MappingFields& fields, std::uint32_t cache_seconds,
                    std::uint64_t num_following, const StoredSizes& stored_sizes) {
    if (columns.empty()) {
        return;
    }
    DirectoryColumns views{text_of(columns, 0), text_of(columns, 1), {}};
    for (std::size_t index = 0; index < views.fields.size(); ++index) {
        views.fields[index] = text_of(columns, 2 + index);
    }
    const auto mapping = std::make_from_tuple<Mapping>(fields);
    const nb::gil_scoped_release release;
    ListingTable::Batch batch =
        read_directories(views, first, end, mapping, stored_sizes, cache_seconds);
    table.insert(std::move(batch), num_following ? std::make_optional(WantedListing{
                                                       mapping.first_node + end, num_following})
                                                 : std::nullopt);
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

std::optional<std::pair<std::uint64_t, std::uint64_t>> wait_wanted(ListingTable& table) {
    const std::optional<WantedListing> wanted = [&] {
        const nb::gil_scoped_release release;
        return table.wait();
    }();
    return wanted ? std::make_optional(std::make_pair(wanted->node, wanted->num_entries))
                  : std::nullopt;
}

Request request_of(const nb::bytes& bytes) {
    return Request({reinterpret_cast<const std::uint8_t*>(bytes.c_str()), bytes.size()});
}

void keep_reply(KeptReplies& replies, const nb::bytes& request, std::int32_t error,
                const nb::bytes& content) {
    replies.insert(request_of(request), {error, {content.c_str(), content.size()}});
}

nb::tuple times_of(const LatencyHistogram& histogram) {
    const LatencyHistogram::Counts counts = histogram.counts();
    return nb::make_tuple(std::vector<std::uint64_t>(counts.begin(), counts.end()),
                          static_cast<double>(histogram.total_nanoseconds()) * 1e-9);
}

nb::dict request_times(const BlockReader& reader) {
    const RequestTimes& times = reader.times;
    nb::dict all;
    all[nb::make_tuple("read", "cpp")] = times_of(times.reads_here);
    all[nb::make_tuple("read", "python")] = times_of(times.reads_forwarded);
    all[nb::make_tuple("other", "cpp")] = times_of(times.others_here);
    all[nb::make_tuple("other", "python")] = times_of(times.others_forwarded);
    return all;
}

int run(int device, const ReaderTable& readers, ListingTable& listings, const KeptReplies& replies,
        std::size_t buffer_size, nb::callable answer) {
    const nb::gil_scoped_release release;
    return answer_requests(device, {readers, listings, replies}, buffer_size,
                           [&](std::span<const std::uint8_t> request) {
                               const nb::gil_scoped_acquire acquire;
                               answer(nb::bytes(request.data(), request.size()));
                           });
}

}  // namespace

void bind_reading(nb::module_& module) {
    module.doc() = "Reads of decoded blocks, and of directories, without the interpreter's lock.";
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
    nb::class_<ReaderTable>(module, "ReaderTable")
        .def(nb::init<>())
        .def("insert", &ReaderTable::insert, "snapshot"_a, "reader"_a)
        .def("erase", &ReaderTable::erase, "snapshot"_a);
    nb::class_<StoredSizes>(module, "StoredSizes")
        .def(nb::init<>())
        .def("add", &StoredSizes::add, "files"_a)
        .def("of", &StoredSizes::of, "key"_a, "size"_a)
        .def("__len__", &StoredSizes::size);
    nb::class_<ListingTable>(module, "ListingTable")
        .def(nb::init<std::size_t>(), "max_bytes"_a)
        .def("entries", &gompfs::kept_listing, "node"_a, "position"_a, "room"_a)
        .def(
            "insert",
            [](ListingTable& table, std::uint64_t node, nb::iterable children,
               std::uint32_t cache_seconds, const StoredSizes& stored_sizes) {
                table.insert(
                    {{node, gompfs::listing_of(node, children, cache_seconds, stored_sizes)}},
                    std::nullopt);
            },
            "node"_a, "children"_a, "cache_seconds"_a, "stored_sizes"_a = StoredSizes())
        .def("insert_columns", &gompfs::insert_columns, "columns"_a, "first"_a, "end"_a,
             "mapping"_a, "cache_seconds"_a, "num_following"_a, "stored_sizes"_a = StoredSizes())
        .def(
            "want",
            [](ListingTable& table, std::uint64_t node, std::uint64_t num_entries) {
                table.want({node, num_entries});
            },
            "node"_a, "num_entries"_a)
        .def("wait_wanted", &gompfs::wait_wanted)
        .def("close", &ListingTable::close)
        .def("__contains__", &ListingTable::contains)
        .def_prop_ro("num_bytes", &ListingTable::num_bytes);
    nb::class_<KeptReplies>(module, "KeptReplies")
        .def(nb::init<std::size_t>(), "max_bytes"_a)
        .def("insert", &gompfs::keep_reply, "request"_a, "error"_a, "content"_a)
        .def("set_nodes_with_xattrs", &KeptReplies::set_nodes_with_xattrs, "nodes"_a);
    module.def("pack_listing", &gompfs::pack_listing, "node"_a, "children"_a, "cache_seconds"_a,
               "position"_a, "room"_a, "stored_sizes"_a = StoredSizes());
    module.def("entry_reply", &gompfs::entry_reply, "inode"_a.none(), "cache_seconds"_a,
               "stored_size"_a = nb::none());
    module.def("attributes_reply", &gompfs::attributes_reply, "inode"_a, "cache_seconds"_a,
               "stored_size"_a = nb::none());
    module.def("answer_requests", &gompfs::run, "device"_a, "readers"_a, "listings"_a, "replies"_a,
               "buffer_size"_a, "answer"_a);
    module.def(
        "mount_read_only",
        [](const nb::bytes& source, const nb::bytes& mountpoint, const nb::bytes& type,
           const nb::bytes& data) {
            return gompfs::mount_read_only(source.c_str(), mountpoint.c_str(), type.c_str(),
                                           data.c_str());
        },
        "source"_a, "mountpoint"_a, "file_system"_a, "data"_a);
    module.def(
        "unmount",
        [](const nb::bytes& mountpoint, bool lazy, bool force) {
            return gompfs::unmount(mountpoint.c_str(), lazy, force);
        },
        "mountpoint"_a, "lazy"_a, "force"_a);
    module.attr("SNAPSHOT_SHIFT") = ReaderTable::kSnapshotShift;
    module.attr("MAX_SNAPSHOTS") = ReaderTable::kMaxSnapshots;
    module.attr("FIRST_TIME_LOG2") = gompfs::LatencyHistogram::kFirstLog2;
}

}  // namespace gompfs
