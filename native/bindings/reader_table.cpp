// The Python class gompfs._native.fuse.ReaderTable; see native/fuse/reader_table.h.
#include "fuse/reader_table.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include "bindings/bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {

void bind_reader_table(nb::module_& module) {
    nb::class_<ReaderTable>(module, "ReaderTable")
        .def(nb::init<>())
        .def("insert", &ReaderTable::insert, "snapshot"_a, "reader"_a)
        .def("erase", &ReaderTable::erase, "snapshot"_a);
    module.attr("SNAPSHOT_SHIFT") = ReaderTable::kSnapshotShift;
    module.attr("MAX_SNAPSHOTS") = ReaderTable::kMaxSnapshots;
}

}  // namespace gompfs
