// The function gompfs._native.gpu.copy_runs. The work is in native/gpu/host_copy.cpp.
#include "gpu/host_copy.h"

#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/types.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void copy_columns(const py::Buffer& source, const py::Buffer& target,
                  const Array<std::uint64_t>& source_offsets,
                  const Array<std::uint64_t>& target_offsets, const Array<std::uint64_t>& sizes,
                  unsigned num_threads) {
    if (target_offsets.size() != source_offsets.size() || sizes.size() != source_offsets.size()) {
        throw nb::value_error("each run needs two offsets and a size");
    }
    const BufferView source_view(source, PyBUF_SIMPLE);
    const BufferView target_view(target, PyBUF_WRITABLE);
    std::vector<CopiedRun> runs;
    for (std::size_t index = 0; index < sizes.size(); ++index) {
        runs.push_back({source_offsets(index), target_offsets(index), sizes(index)});
    }
    const nb::gil_scoped_release release;
    copy_runs(source_view.bytes(), target_view.mutable_bytes(), runs, num_threads);
}

}  // namespace

void bind_host_copy(nb::module_& gpu) {
    gpu.def(
        "copy_runs", &copy_columns, "source"_a, "target"_a, "source_offsets"_a, "target_offsets"_a,
        "sizes"_a, "num_threads"_a,
        "Copies runs of bytes from `source` to `target` on several threads. All three columns are "
        "in bytes.\n\n"
        "The runs must not overlap in the target. Raises ValueError, before anything is copied, if "
        "a run is not inside both.");
}

}  // namespace gompfs
