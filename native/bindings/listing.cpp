// The Python class gompfs._native.fuse.Listing: converts the entries of a directory.
#include "fuse/listing.h"

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/inode.h"
#include "bindings/types.h"
#include "blocks/stored_sizes.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void make_listing(Listing* listing, std::uint64_t node,
                  const nb::typed<nb::iterable, py::Tuple<nb::bytes, py::Inode>>& children,
                  std::uint32_t cache_seconds, const StoredSizes& stored_sizes) {
    Listing made(node, cache_seconds);
    for (const nb::handle child : children) {
        const auto name = nb::cast<nb::bytes>(child[0]);
        const InodeFields inode = inode_of(child[1]);
        made.add({name.c_str(), name.size()}, inode, stored_sizes.of(inode.ino, inode.size));
    }
    new (listing) Listing(std::move(made));
}

nb::bytes pack(const Listing& listing, std::uint64_t position, std::size_t capacity) {
    std::vector<std::uint8_t> packed;
    listing.pack(position, capacity, packed);
    return to_bytes(packed);
}

}  // namespace

void bind_listing(nb::module_& module) {
    nb::class_<Listing>(module, "Listing", "The entries of one directory, in the form of replies.")
        .def("__init__", &gompfs::make_listing, "node"_a, "children"_a, "cache_seconds"_a,
             "stored_sizes"_a = StoredSizes(),
             "The kernel may cache the entries for `cache_seconds`; if that is 0, it gets no "
             "attributes. `stored_sizes` is indexed by node.")
        .def("pack", &gompfs::pack, "position"_a, "capacity"_a,
             "Returns the entries from `position` on as a READDIRPLUS reply of at most `capacity` "
             "bytes.");
}

}  // namespace gompfs
