// The Python class gompfs._native.fuse.ListingTable: converts inodes and rows of the index to
// listings.
#include "fuse/listing_table.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/columns.h"
#include "bindings/inode.h"
#include "blocks/stored_sizes.h"
#include "fuse/index_columns.h"
#include "fuse/listing.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

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

nb::bytes entries_of(const Listing& listing, std::uint64_t position, std::size_t capacity) {
    std::vector<std::uint8_t> packed;
    listing.pack(position, capacity, packed);
    return nb::bytes(packed.data(), packed.size());
}

nb::bytes pack_listing(std::uint64_t node, nb::iterable children, std::uint32_t cache_seconds,
                       std::uint64_t position, std::size_t capacity,
                       const StoredSizes& stored_sizes) {
    return entries_of(*listing_of(node, children, cache_seconds, stored_sizes), position, capacity);
}

std::optional<nb::bytes> cached_listing(ListingTable& table, std::uint64_t node,
                                        std::uint64_t position, std::size_t capacity) {
    const auto listing = table.use(node);
    return listing ? std::make_optional(entries_of(*listing, position, capacity)) : std::nullopt;
}

using MappingFields = std::tuple<std::uint64_t, std::optional<std::uint32_t>,
                                 std::optional<std::uint32_t>, std::uint32_t>;

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
    nb::class_<ListingTable>(module, "ListingTable")
        .def(nb::init<std::size_t>(), "max_bytes"_a)
        .def("entries", &gompfs::cached_listing, "node"_a, "position"_a, "capacity"_a)
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
    module.def("pack_listing", &gompfs::pack_listing, "node"_a, "children"_a, "cache_seconds"_a,
               "position"_a, "capacity"_a, "stored_sizes"_a = StoredSizes());
}

}  // namespace gompfs
