// The class gompfs._native.gpu.SmallBatches. The work is in native/gpu/small_batches.cpp.
#include "gpu/small_batches.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/block_views.h"
#include "bindings/buffer_view.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

// SmallBatches with what it refers to: the driver, and views of pinned memory.
class BoundSmallBatches {
  public:
    BoundSmallBatches(const std::string& library, const std::vector<CudaHandle>& functions,
                      unsigned num_threads, const std::vector<unsigned>& shared_bytes,
                      std::pair<CudaHandle, CudaHandle> context_and_stream,
                      std::pair<nb::handle, nb::handle> pinned,
                      std::pair<std::uint64_t, std::uint64_t> on_device, std::size_t max_blocks)
        : driver_(library),
          input_(pinned.first, PyBUF_WRITABLE),
          output_(pinned.second, PyBUF_WRITABLE),
          batches_(driver_, kernels(functions, num_threads, shared_bytes),
                   {context_and_stream.first, context_and_stream.second, input_.mutable_bytes(),
                    output_.mutable_bytes(), on_device.first, on_device.second},
                   max_blocks) {}

    nb::object decode(nb::sequence blocks, nb::handle out,
                      const std::optional<std::vector<std::uint32_t>>& sizes, bool verify,
                      unsigned num_threads, DecodeWork& work) {
        const BufferView out_view(out, PyBUF_WRITABLE);
        const BlockViews views(blocks);
        std::optional<std::vector<BlockStatus>> statuses;
        {
            const nb::gil_scoped_release release;
            statuses = batches_.decode(views.blocks(), out_view.mutable_bytes(), sizes, verify,
                                       num_threads, work);
        }
        return statuses ? nb::object(to_bytes(*statuses)) : nb::none();
    }

  private:
    static std::array<WideKernel, kNumWideKernels> kernels(
        const std::vector<CudaHandle>& functions, unsigned num_threads,
        const std::vector<unsigned>& shared_bytes) {
        if (functions.size() != kNumWideKernels || shared_bytes.size() != kNumWideKernels) {
            throw nb::value_error("a kernel is missing");
        }
        std::array<WideKernel, kNumWideKernels> kernels;
        for (std::size_t number = 0; number < kNumWideKernels; ++number) {
            kernels[number] = {functions[number], num_threads, shared_bytes[number]};
        }
        return kernels;
    }

    const CudaDriver driver_;
    const BufferView input_, output_;
    SmallBatches batches_;
};

}  // namespace

void bind_small_batches(nb::module_& gpu) {
    nb::class_<BoundSmallBatches>(gpu, "SmallBatches")
        .def(nb::init<const std::string&, const std::vector<CudaHandle>&, unsigned,
                      const std::vector<unsigned>&, std::pair<CudaHandle, CudaHandle>,
                      std::pair<nb::handle, nb::handle>, std::pair<std::uint64_t, std::uint64_t>,
                      std::size_t>(),
             "library"_a, "functions"_a, "num_threads"_a, "shared_bytes"_a, "context_and_stream"_a,
             "pinned"_a, "on_device"_a, "max_blocks"_a)
        .def("decode", &BoundSmallBatches::decode, "blocks"_a, "out"_a, "sizes"_a, "verify"_a,
             "num_threads"_a, "work"_a);
}

}  // namespace gompfs
