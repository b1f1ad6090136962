// The class gompfs._native.codec.DecodeWork.
#include "common/decode_work.h"

#include <nanobind/nanobind.h>

#include "bindings/bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {

void bind_decode_work(nb::module_& codec) {
    nb::class_<DecodeWork>(codec, "DecodeWork",
                           "Counts the blocks and bytes decoded, and the seconds during which at "
                           "least one batch was running. Thread-safe.")
        .def(nb::init<>())
        .def("begin", &DecodeWork::begin, "Begins a batch.")
        .def("end", &DecodeWork::end, "num_blocks"_a, "num_bytes"_a,
             "Ends a batch that decoded this much; 0 and 0 if it failed.")
        .def("clear", &DecodeWork::clear, "Resets the counts. No batch may be running.")
        .def("restart", &DecodeWork::restart,
             "Resets everything in the child of a fork, where batches of the parent would count as "
             "running for ever.")
        .def_prop_ro("num_blocks", [](const DecodeWork& work) { return work.sums().num_blocks; })
        .def_prop_ro("num_bytes", [](const DecodeWork& work) { return work.sums().num_bytes; })
        .def_prop_ro("seconds", [](const DecodeWork& work) { return work.sums().seconds; });
}

}  // namespace gompfs
