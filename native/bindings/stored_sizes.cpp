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
    nb::class_<StoredSizes>(module, "StoredSizes")
        .def(nb::init<>())
        .def("add", &StoredSizes::add, "files"_a)
        .def("of", &StoredSizes::of, "key"_a, "size"_a)
        .def("__len__", &StoredSizes::size);
}

}  // namespace gompfs
