// Stands in for the CUDA driver in tests of native/gpu: device memory is host memory, and the
// kernels run on the host. The handle of a function is the number of its codec.
#include "host/cuda_on_host.h"
// Include the kernels first, so that no other header can hide a missing include of theirs.
#include <cstring>

#include "codec/decode_bit_wide.cu"
#include "codec/decode_byte_wide.cu"

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kInvalidHandle = 400;
constexpr unsigned kMemoryTypeHost = 1;

const unsigned char* pinned_start = nullptr;
const unsigned char* pinned_end = nullptr;
int context_depth = 0;

template <typename Value>
Value argument(void** arguments, int index) {
    return *static_cast<Value*>(arguments[index]);
}

}  // namespace

extern "C" {

// For the tests: says which host memory is pinned, and how many contexts are pushed.
void pin(const unsigned char* start, std::size_t size) {
    pinned_start = start;
    pinned_end = start + size;
}

int depth_of_contexts() { return context_depth; }

int cuCtxPushCurrent_v2(void*) {
    ++context_depth;
    return kSuccess;
}

int cuCtxPopCurrent_v2(void**) {
    --context_depth;
    return kSuccess;
}

int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t size, void*) {
    std::memcpy(reinterpret_cast<void*>(to), from, size);
    return kSuccess;
}

int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t size, void*) {
    std::memcpy(to, reinterpret_cast<const void*>(from), size);
    return kSuccess;
}

int cuLaunchKernel(void* function, unsigned num_ctas, unsigned, unsigned, unsigned num_threads,
                   unsigned, unsigned, unsigned shared_bytes, void*, void** arguments, void**) {
    const auto codec = reinterpret_cast<std::uintptr_t>(function);
    if (codec != 1 && codec != 2) {
        return kInvalidHandle;
    }
    cuda_on_host::launch(num_ctas, num_threads, shared_bytes, [&] {
        (codec == 1 ? decode_byte_wide : decode_bit_wide)(
            argument<const unsigned char*>(arguments, 0),
            argument<const unsigned long long*>(arguments, 1),
            argument<const unsigned*>(arguments, 2), argument<unsigned char*>(arguments, 3),
            argument<const unsigned long long*>(arguments, 4),
            argument<const unsigned*>(arguments, 5), argument<unsigned char*>(arguments, 6),
            argument<unsigned*>(arguments, 7), argument<unsigned>(arguments, 8),
            argument<unsigned char*>(arguments, 9));
    });
    return kSuccess;
}

int cuStreamSynchronize(void*) { return kSuccess; }

int cuPointerGetAttribute(void* value, int, std::uint64_t address) {
    const auto* const byte = reinterpret_cast<const unsigned char*>(address);
    if (byte < pinned_start || byte >= pinned_end) {
        return kInvalidValue;
    }
    std::memcpy(value, &kMemoryTypeHost, sizeof kMemoryTypeHost);
    return kSuccess;
}

}  // extern "C"
