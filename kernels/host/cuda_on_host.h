// Runs CUDA kernels on the CPU, for tests: included before a .cu file, this header makes the file
// plain C++, so that sanitizers can check the kernels.
//
// A launch runs one CTA after another. Each thread of a CTA is a fiber. Fibers take turns at the
// collective operations of a warp or a CTA (shuffles, votes, barriers): a fiber waits there until
// all lanes have reached the same operation. If threads reach different operations, or a thread
// ends while others wait, the program aborts; on a GPU the behaviour would be undefined. Races
// between two such operations are not detected, because fibers do not run at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#define __global__
#define __device__
#define __shared__
#define __launch_bounds__(...)

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

namespace cuda_on_host {

struct Dimensions {
    unsigned x = 1, y = 1, z = 1;
};

// Coordinates of the fiber that is running.
extern Dimensions thread_index, block_index, block_size, grid_size;

// Waits for all lanes of the warp. Returns the values that the lanes passed. `operation` names the
// operation, to detect lanes that wait at different ones. `mask` must be all lanes. meet_block does
// the same for all threads of the CTA, and meet_two_warps for those of two warps, at a barrier with
// a number below kNumBarriers.
const std::uint64_t* meet_warp(unsigned mask, std::uint64_t value, const char* operation);
const std::uint64_t* meet_block(std::uint64_t value, const char* operation);
void meet_two_warps(unsigned barrier);

// Calls kernel() for each thread of a grid. Shared memory is the extern array shared_memory; under
// AddressSanitizer the bytes after shared_bytes are poisoned.
void launch(unsigned num_blocks, unsigned num_threads, std::size_t shared_bytes,
            const std::function<void()>& kernel);

constexpr unsigned kWarpSize = 32;
constexpr unsigned kNumBarriers = 16;
constexpr std::size_t kMaxSharedBytes = 256 * 1024;

template <typename Value>
Value shuffle(unsigned mask, Value value, unsigned source, const char* operation) {
    static_assert(sizeof(Value) <= sizeof(std::uint64_t));
    const std::uint64_t* values = meet_warp(mask, static_cast<std::uint64_t>(value), operation);
    return static_cast<Value>(values[source % kWarpSize]);
}

inline unsigned lane() { return thread_index.x % kWarpSize; }

}  // namespace cuda_on_host

extern uint4 shared_memory[];

#define threadIdx cuda_on_host::thread_index
#define blockIdx cuda_on_host::block_index
#define blockDim cuda_on_host::block_size
#define gridDim cuda_on_host::grid_size

template <typename Value>
Value __shfl_sync(unsigned mask, Value value, int source) {
    return cuda_on_host::shuffle(mask, value, static_cast<unsigned>(source), "shfl");
}

template <typename Value>
Value __shfl_up_sync(unsigned mask, Value value, unsigned delta) {
    const unsigned lane = cuda_on_host::lane();
    return cuda_on_host::shuffle(mask, value, lane < delta ? lane : lane - delta, "shfl_up");
}

inline unsigned __ballot_sync(unsigned mask, bool predicate) {
    const std::uint64_t* values = cuda_on_host::meet_warp(mask, predicate, "vote");
    unsigned votes = 0;
    for (unsigned lane = 0; lane < cuda_on_host::kWarpSize; ++lane) {
        votes |= static_cast<unsigned>(values[lane]) << lane;
    }
    return votes;
}

inline unsigned __match_any_sync(unsigned mask, unsigned value) {
    const std::uint64_t* values = cuda_on_host::meet_warp(mask, value, "match_any");
    unsigned same = 0;
    for (unsigned lane = 0; lane < cuda_on_host::kWarpSize; ++lane) {
        same |= static_cast<unsigned>(values[lane] == value) << lane;
    }
    return same;
}

inline bool __any_sync(unsigned mask, bool predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
inline bool __all_sync(unsigned mask, bool predicate) {
    return __ballot_sync(mask, predicate) == 0xffffffffu;
}
inline void __syncwarp() { cuda_on_host::meet_warp(0xffffffffu, 0, "syncwarp"); }
inline void __syncthreads() { cuda_on_host::meet_block(0, "syncthreads"); }

inline int __syncthreads_or(int predicate) {
    const std::uint64_t* values = cuda_on_host::meet_block(predicate != 0, "syncthreads_or");
    int any = 0;
    for (unsigned thread = 0; thread < cuda_on_host::block_size.x; ++thread) {
        any |= static_cast<int>(values[thread]);
    }
    return any;
}

template <typename Value>
Value atomicAdd(Value* target, Value value) {
    return std::exchange(*target, *target + value);
}

template <typename Value>
Value atomicOr(Value* target, Value value) {
    return std::exchange(*target, *target | value);
}

template <typename Value>
Value atomicMax(Value* target, Value value) {
    return std::exchange(*target, value > *target ? value : *target);
}

template <typename Value>
Value atomicExch(Value* target, Value value) {
    return std::exchange(*target, value);
}

template <typename Value>
Value atomicCAS(Value* target, Value expected, Value value) {
    const Value before = *target;
    *target = before == expected ? value : before;
    return before;
}

inline void __threadfence() {}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(unsigned bits) { return __builtin_ffs(static_cast<int>(bits)); }
inline int __clz(unsigned bits) { return bits == 0 ? 32 : __builtin_clz(bits); }

inline unsigned long long __umul64hi(unsigned long long left, unsigned long long right) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(left) * right >> 64);
}

inline unsigned __brev(unsigned bits) {
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) {
        reversed |= (bits >> bit & 1) << (31 - bit);
    }
    return reversed;
}

inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>(((static_cast<std::uint64_t>(high) << 32 | low) >> (shift & 31)) &
                                 0xffffffffu);
}

template <typename Value>
Value min(Value left, Value right) {
    return left < right ? left : right;
}

template <typename Value>
Value max(Value left, Value right) {
    return left > right ? left : right;
}
