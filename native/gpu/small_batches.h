// Decodes small batches of blocks on a GPU, from host memory to host memory.
//
// A block that is decoded alone takes some tens of microseconds on the device, so the host must not
// take longer to start the work. A batch therefore is one copy to the device, a launch for each
// codec, and one copy back, all from C++. Larger batches gain more from being cut into slices that
// overlap (gompfs/gpu/batch.py).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/block_batch.h"
#include "common/decode_work.h"
#include "gpu/driver.h"

namespace gompfs {

// A kernel that decodes a block with each CTA (kernels/codec/decode_byte_wide.cu). The kernel of a
// codec is at its number minus 1.
constexpr std::size_t kNumWideKernels = 2;
struct WideKernel {
    CudaHandle function;
    unsigned num_threads;
    unsigned shared_bytes;
};

// Where the work happens: a context and a stream in it, and memory that is used for nothing else.
// The device can access the pinned memory.
struct SmallBatchMemory {
    CudaHandle context;
    CudaHandle stream;
    MutableBytes pinned_input;
    MutableBytes pinned_output;
    std::uint64_t device_input;   // address of as many bytes as pinned_input has
    std::uint64_t device_output;  // address of as many bytes as pinned_output has
};

class SmallBatches {
  public:
    SmallBatches(const CudaDriver& driver, const std::array<WideKernel, kNumWideKernels>& kernels,
                 const SmallBatchMemory& memory, std::size_t max_blocks);

    // Checks and decodes blocks as gompfs::decode_blocks does. Returns nothing, and leaves `out` as
    // it is, if the batch is not one for this object: if it has too many blocks or bytes, or a
    // block with another codec, size or header than its kernels decode. Throws DriverError if the
    // device fails. Counts the blocks as `work`. One thread at a time may call it.
    std::optional<std::vector<BlockStatus>> decode(
        std::span<const Bytes> blocks, MutableBytes out,
        std::optional<std::span<const std::uint32_t>> sizes, bool verify, unsigned num_threads,
        DecodeWork& work);

  private:
    struct Plan;
    std::optional<Plan> plan(std::span<const Bytes> blocks, MutableBytes out,
                             std::optional<std::span<const std::uint32_t>> sizes) const;
    void stage(const Plan& plan, std::span<const Bytes> blocks, std::vector<BlockStatus>& statuses,
               unsigned num_threads) const;
    void launch(const Plan& plan, std::uint64_t target) const;
    void fetch(const Plan& plan, MutableBytes out, bool is_pinned, unsigned num_threads) const;

    const CudaDriver& driver_;
    const std::array<WideKernel, kNumWideKernels> kernels_;
    const SmallBatchMemory memory_;
    const std::size_t max_blocks_;
};

}  // namespace gompfs
