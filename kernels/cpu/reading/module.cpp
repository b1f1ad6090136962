// The Python module gompfs._reading: decoded blocks and directories, who reads them, and the
// requests of a mount that need nothing else.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "common/buffer_view.h"
#include "reading/attributes.h"
#include "reading/block_reader.h"
#include "reading/listing.h"
#include "reading/request_loop.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using Extents = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>;

struct LentBuffer final : Loan {
    explicit LentBuffer(nb::handle object) : view(object, PyBUF_SIMPLE) {}
    BufferView view;
};

void insert(BlockReader& reader, std::uint64_t number, nb::handle content) {
    auto loan = std::make_unique<LentBuffer>(content);
    const std::span<const std::uint8_t> bytes = loan->view.bytes();
    reader.table.insert(number, bytes, std::move(loan));
}

void add_file(BlockReader& reader, std::uint64_t node, std::uint64_t size, const Extents& extents) {
    FileLayout layout{size, {}};
    for (const auto& [file_offset, stream_offset, extent_size] : extents) {
        layout.extents.push_back({file_offset, stream_offset, extent_size});
    }
    reader.add_file(node, std::move(layout));
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> wait_ahead(BlockReader& reader) {
    const std::optional<BlockRange> range = [&] {
        const nb::gil_scoped_release release;
        return reader.readers.wait();
    }();
    return range ? std::make_optional(std::make_pair(range->first, range->end)) : std::nullopt;
}

// The fields of a gompfs.model.Inode.
fuse_attr attributes_of(nb::handle inode) {
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
    return make_attributes(fields);
}

void add_entries(Listing& listing, nb::iterable children) {
    for (const nb::handle child : children) {
        const auto name = nb::cast<nb::bytes>(child[0]);
        listing.add({name.c_str(), name.size()}, attributes_of(child[1]));
    }
}

template <typename Value>
nb::bytes bytes_of(const Value& value) {
    return nb::bytes(&value, sizeof value);
}

nb::bytes entry_reply(nb::handle inode, std::uint32_t cache_seconds) {
    fuse_entry_out entry{};
    entry.entry_valid = cache_seconds;
    if (!inode.is_none()) {
        entry.attr = attributes_of(inode);
        entry.attr_valid = cache_seconds;
        entry.nodeid = entry.attr.ino;
    }
    return bytes_of(entry);
}

nb::bytes attributes_reply(nb::handle inode, std::uint32_t cache_seconds) {
    fuse_attr_out reply{};
    reply.attr = attributes_of(inode);
    reply.attr_valid = cache_seconds;
    return bytes_of(reply);
}

int run(int device, BlockReader& reader, const ListingTable& listings, std::size_t buffer_size,
        nb::callable answer) {
    const nb::gil_scoped_release release;
    return answer_requests(
        device, reader, listings, buffer_size, [&](std::span<const std::uint8_t> request) {
            const nb::gil_scoped_acquire acquire;
            answer(nb::bytes(request.data(), request.size()));
        });
}

}  // namespace
}  // namespace gompfs

NB_MODULE(_reading, module) {
    nb::set_leak_warnings(false);  // what lives as long as the process need not be freed
    using gompfs::BlockReader;
    using gompfs::Listing;
    using gompfs::ListingTable;
    module.doc() = "Reads of decoded blocks and of directories, without the interpreter's lock.";
    nb::class_<BlockReader>(module, "BlockReader")
        .def(nb::init<std::uint64_t, std::uint64_t, std::uint64_t>(), "num_blocks"_a,
             "block_size"_a, "capacity"_a)
        .def("insert", &gompfs::insert, "number"_a, "content"_a)
        .def(
            "erase", [](BlockReader& reader, std::uint64_t number) { reader.table.erase(number); },
            "number"_a)
        .def(
            "take_use",
            [](BlockReader& reader, std::uint64_t number) { return reader.table.take_use(number); },
            "number"_a)
        .def("clear", [](BlockReader& reader) { reader.table.clear(); })
        .def(
            "note",
            [](BlockReader& reader, std::uint64_t first, std::uint64_t count,
               std::uint64_t max_ahead) {
                reader.max_ahead.store(max_ahead);
                return reader.readers.note(first, count, max_ahead);
            },
            "first"_a, "count"_a, "max_ahead"_a)
        .def("wait_ahead", &gompfs::wait_ahead)
        .def("close", [](BlockReader& reader) { reader.readers.close(); })
        .def("add_file", &gompfs::add_file, "node"_a, "size"_a, "extents"_a)
        .def_prop_ro("num_hits", [](BlockReader& reader) { return reader.num_hits.load(); });    nb::class_<Listing>(module, "Listing")
        .def(nb::init<std::uint64_t, std::uint32_t>(), "node"_a, "cache_seconds"_a)
        .def("add", &gompfs::add_entries, "children"_a)
        .def(
            "entries",
            [](const Listing& listing, std::uint64_t position, std::size_t room) {
                const auto found = listing.entries(position, room);
                return nb::bytes(found.data(), found.size());
            },
            "position"_a, "room"_a);
    nb::class_<ListingTable>(module, "ListingTable")
        .def(nb::init<std::size_t>(), "max_entries"_a)
        .def("insert", &ListingTable::insert, "node"_a, "listing"_a)
        .def("__contains__",
             [](const ListingTable& table, std::uint64_t node) { return bool(table.find(node)); })
        .def_prop_ro("num_entries", &ListingTable::num_entries);
    module.def("entry_reply", &gompfs::entry_reply, "inode"_a.none(), "cache_seconds"_a);
    module.def("attributes_reply", &gompfs::attributes_reply, "inode"_a, "cache_seconds"_a);
    module.def("answer_requests", &gompfs::run, "device"_a, "reader"_a, "listings"_a,
               "buffer_size"_a, "answer"_a);
}
