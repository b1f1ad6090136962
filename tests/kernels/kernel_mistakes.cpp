// Kernels with one mistake each, which the launcher or a sanitizer must find: kernel_mistakes NAME.
// Without a mistake, "none", it counts votes and prints how many were right.
#include <cstdio>
#include <memory>
#include <string_view>

#include "host/cuda_on_host.h"

namespace {

constexpr unsigned kNumCtas = 2, kNumThreads = 64, kSharedBytes = 64, kRounds = 100;

void run(std::string_view mistake, char* memory, std::size_t size, unsigned& num_right) {
    const unsigned thread = threadIdx.x;
    __syncthreads();
    if (mistake == "memory" && thread == kNumThreads - 1) {
        static_cast<volatile char*>(memory)[size] = 1;
    } else if (mistake == "shared memory" && thread == 5) {
        reinterpret_cast<volatile char*>(shared_memory)[kSharedBytes] = 1;
    } else if (mistake == "operations of a warp") {
        thread == 3 ? __syncwarp() : static_cast<void>(__ballot_sync(0xffffffffu, true));
    } else if (mistake == "operations of a warp and of the CTA") {
        thread == 3 ? __syncwarp() : __syncthreads();
    } else if (mistake == "barrier of two warps" && thread < 32) {
        cuda_on_host::meet_two_warps(1);
    } else if (mistake == "end" && thread == 3) {
        return;
    }
    for (unsigned round = 0; round < kRounds; ++round) {
        num_right += __ballot_sync(0xffffffffu, thread % 32 == round % 32) == 1u << round % 32;
        __syncthreads();
    }
}

}  // namespace

int main(int, char** arguments) {
    const std::size_t size = 100;
    const auto memory = std::make_unique<char[]>(size);
    unsigned num_right = 0;
    cuda_on_host::launch(kNumCtas, kNumThreads, kSharedBytes,
                         [&] { run(arguments[1], memory.get(), size, num_right); });
    std::printf("%d\n", num_right == kNumCtas * kNumThreads * kRounds);
}
