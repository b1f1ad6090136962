// The class gompfs._native.codec.DecodeWork.
#include "common/decode_work.h"

#include <nanobind/nanobind.h>

#include "bindings/bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {

void bind_decode_work(nb::module_& codec) {
    nb::class_<DecodeWork>(codec, "DecodeWork")
        .def(nb::init<>())
        .def("begin", &DecodeWork::begin)
        .def("end", &DecodeWork::end, "num_blocks"_a, "num_bytes"_a)
        .def("clear", &DecodeWork::clear)
        .def("restart", &DecodeWork::restart)
        .def_prop_ro("num_blocks", [](const DecodeWork& work) { return work.sums().num_blocks; })
        .def_prop_ro("num_bytes", [](const DecodeWork& work) { return work.sums().num_bytes; })
        .def_prop_ro("seconds", [](const DecodeWork& work) { return work.sums().seconds; });
}

}  // namespace gompfs
