// The Python class gompfs._native.blocks.StoredSizes; see native/blocks/stored_sizes.h.
#include "blocks/stored_sizes.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {

void bind_stored_sizes(nb::module_& module) {
    nb::class_<StoredSizes>(
        module, "StoredSizes",
        "How many bytes an archive stores of its files with holes; other files are stored whole.")
        .def(nb::init<>())
        .def(
            "add", &StoredSizes::add, "files"_a,
            "Adds files as pairs of key and stored size. Keys must ascend, also from call to call, "
            "else ValueError.")
        .def("of", &StoredSizes::of, "key"_a, "size"_a,
             "Returns the stored size of a file of `size` bytes; never more than `size`.")
        .def("__len__", &StoredSizes::size, "The number of files with holes.");
}

}  // namespace gompfs
