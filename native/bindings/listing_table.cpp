// The Python classes ListingTable and NodeMapping of gompfs._native.fuse: converts rows of the
// index to listings.
#include "fuse/listing_table.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/columns.h"
#include "blocks/stored_sizes.h"
#include "fuse/index_columns.h"
#include "fuse/listing.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

std::optional<std::shared_ptr<Listing>> use(ListingTable& table, std::uint64_t node) {
    // Python has no constant objects, and no method that changes a listing.
    auto listing = std::const_pointer_cast<Listing>(table.use(node));
    return listing ? std::optional(std::move(listing)) : std::nullopt;
}

void insert_columns(ListingTable& table, const Columns& columns, std::uint64_t first,
                    std::uint64_t end, const NodeMapping& mapping, std::uint32_t cache_seconds,
                    std::uint64_t num_following, const StoredSizes& stored_sizes) {
    if (columns.empty()) {
        return;
    }
    DirectoryColumns views{text_of(columns, 0), text_of(columns, 1), {}};
    for (std::size_t index = 0; index < views.fields.size(); ++index) {
        views.fields[index] = text_of(columns, 2 + index);
    }
    const nb::gil_scoped_release release;
    ListingBatch batch = read_directories(views, first, end, mapping, stored_sizes, cache_seconds);
    table.insert(std::move(batch), num_following ? std::make_optional(WantedListing{
                                                       mapping.first_node + end, num_following})
                                                 : std::nullopt);
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> wait_wanted(ListingTable& table) {
    const std::optional<WantedListing> wanted = [&] {
        const nb::gil_scoped_release release;
        return table.wait();
    }();
    return wanted ? std::make_optional(std::make_pair(wanted->node, wanted->num_entries))
                  : std::nullopt;
}

}  // namespace

void bind_listing_table(nb::module_& module) {
    using Number = std::optional<std::uint32_t>;
    nb::class_<NodeMapping>(module, "NodeMapping", "How a mount changes the inodes of an archive.")
        .def(nb::init<std::uint64_t, Number, Number, std::uint32_t>(), "first_node"_a = 0,
             "uid"_a = nb::none(), "gid"_a = nb::none(), "umask"_a = 0,
             "Adds `first_node` to inode numbers. `uid` and `gid` replace the owners, unless they "
             "are None.");
    nb::class_<ListingTable>(
        module, "ListingTable",
        "The cache of directory listings of a mount, and requests to list directories ahead.")
        .def(nb::init<std::size_t>(), "max_bytes"_a,
             "Makes a table of up to `max_bytes` bytes. The oldest listings are dropped first.")
        .def("use", &gompfs::use, "node"_a,
             "Returns the listing of a directory, or None if it is not cached.")
        .def(
            "insert",
            [](ListingTable& table, std::uint64_t node, std::shared_ptr<Listing> listing) {
                table.insert({{node, std::move(listing)}}, std::nullopt);
            },
            "node"_a, "listing"_a)
        .def("insert_columns", &gompfs::insert_columns, "columns"_a, "first"_a, "end"_a,
             "mapping"_a, "cache_seconds"_a, "num_following"_a, "stored_sizes"_a = StoredSizes(),
             "Caches the listings of the directories with inode numbers `first` to `end` - 1, from "
             "rows of the index.\n\n"
             "The first use of one of these listings requests the directories from `end` on, with "
             "`num_following` entries; 0 for no request. Raises ValueError if the rows are "
             "inconsistent (see native/fuse/index_columns.h).")
        .def(
            "want",
            [](ListingTable& table, std::uint64_t node, std::uint64_t num_entries) {
                table.want({node, num_entries});
            },
            "node"_a, "num_entries"_a,
            "Requests that a directory and those after it in the index are listed ahead, up to "
            "`num_entries` entries.")
        .def("wait_wanted", &gompfs::wait_wanted,
             "Waits for a request to list ahead, as node and number of entries. Returns None once "
             "the table is closed.")
        .def("close", &ListingTable::close, "Ends all waits of `wait_wanted`.")
        .def("__contains__", &ListingTable::contains, "node"_a,
             "Whether the listing of a directory is cached.")
        .def_prop_ro("num_bytes", &ListingTable::num_bytes,
                     "Memory that the cached listings take.");
}

}  // namespace gompfs
