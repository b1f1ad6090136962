// Implements the execution of kernels on the CPU; see cuda_on_host.h.
//
// Fibers are ucontext contexts with stacks of 64 KiB, which are kept for later CTAs and launches.
// run_block resumes all fibers of a CTA in turn until every fiber has ended; a fiber gives control
// back when it waits in meet(). AddressSanitizer is told about every switch of stacks, so that it
// checks the right one.
#include "host/cuda_on_host.h"

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) \
    (static_cast<void>(address), static_cast<void>(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) \
    (static_cast<void>(address), static_cast<void>(size))
#endif

namespace cuda_on_host {

Dimensions thread_index, block_index, block_size, grid_size;

namespace {

constexpr std::size_t kStackSize = 64 * 1024;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "kernel on the host: %s (thread %u of CTA %u)\n", what.c_str(),
                 thread_index.x, block_index.x);
    std::abort();
}

// A point where threads wait for each other: the lanes of a warp, or all threads of a CTA.
struct Meeting {
    unsigned num_members = 0;
    unsigned num_waiting = 0;
    std::uint64_t round = 0;
    const char* operation = nullptr;
    std::vector<std::uint64_t> brought, given;
};

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    void* fake_stack = nullptr;
    bool ended = false;
};

// The CTA that is running; there is one at a time.
struct Block {
    std::vector<Fiber> fibers;  // at least one per thread
    std::vector<Meeting> warps;
    Meeting all;
    const std::function<void()>* kernel = nullptr;
    unsigned running = 0;
    ucontext_t scheduler;
    void* scheduler_fake_stack = nullptr;
    const void* scheduler_stack = nullptr;
    std::size_t scheduler_stack_size = 0;
};

Block block;

void enter_fiber([[maybe_unused]] Fiber& fiber) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&block.scheduler_fake_stack, fiber.stack.get(), kStackSize);
#endif
    swapcontext(&block.scheduler, &fiber.context);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(block.scheduler_fake_stack, nullptr, nullptr);
#endif
}

void leave_fiber(Fiber& fiber) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(fiber.ended ? nullptr : &fiber.fake_stack, block.scheduler_stack,
                                   block.scheduler_stack_size);
#endif
    swapcontext(&fiber.context, &block.scheduler);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fiber.fake_stack, nullptr, nullptr);
#endif
}

void run_fiber() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &block.scheduler_stack, &block.scheduler_stack_size);
#endif
    (*block.kernel)();
    Fiber& fiber = block.fibers[block.running];
    fiber.ended = true;
    for (const Meeting* meeting : {&block.all, &block.warps[block.running / kWarpSize]}) {
        if (meeting->num_waiting != 0) {
            fail(std::string("a thread ends while others wait at ") + meeting->operation);
        }
    }
    leave_fiber(fiber);
}

const std::uint64_t* meet(Meeting& meeting, unsigned member, std::uint64_t value,
                          const char* operation) {
    if (meeting.num_waiting != 0 && std::strcmp(meeting.operation, operation) != 0) {
        fail(std::string("one thread is at ") + operation + ", another at " + meeting.operation);
    }
    meeting.operation = operation;
    meeting.brought[member] = value;
    const std::uint64_t round = meeting.round;
    if (++meeting.num_waiting == meeting.num_members) {
        meeting.given = meeting.brought;
        meeting.num_waiting = 0;
        ++meeting.round;
    }
    while (meeting.round == round) {
        leave_fiber(block.fibers[block.running]);
    }
    return meeting.given.data();
}

void set_up(Meeting& meeting, unsigned num_members) {
    meeting = Meeting{};
    meeting.num_members = num_members;
    meeting.brought.resize(num_members);
}

void run_block(unsigned num_threads) {
    set_up(block.all, num_threads);
    for (Meeting& warp : block.warps) {
        set_up(warp, kWarpSize);
    }
    for (unsigned thread = 0; thread < num_threads; ++thread) {
        Fiber& fiber = block.fibers[thread];
        fiber.ended = false;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = kStackSize;
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, run_fiber, 0);
        // The red zones of the fiber that ended on this stack. Without a size, AddressSanitizer's
        // swapcontext does not clear them again at each switch, which takes most of the time.
        ASAN_UNPOISON_MEMORY_REGION(fiber.stack.get(), kStackSize);
        fiber.context.uc_stack.ss_size = 0;
    }
    for (unsigned num_running = num_threads; num_running != 0;) {
        for (unsigned thread = 0; thread < num_threads; ++thread) {
            if (!block.fibers[thread].ended) {
                block.running = thread;
                thread_index = {thread, 0, 0};
                enter_fiber(block.fibers[thread]);
                num_running -= block.fibers[thread].ended;
            }
        }
    }
}

}  // namespace

const std::uint64_t* meet_warp(unsigned mask, std::uint64_t value, const char* operation) {
    if (mask != 0xffffffffu) {
        fail("a mask that has not all lanes");
    }
    return meet(block.warps[block.running / kWarpSize], lane(), value, operation);
}

const std::uint64_t* meet_block(std::uint64_t value, const char* operation) {
    return meet(block.all, block.running, value, operation);
}

void launch(unsigned num_blocks, unsigned num_threads, std::size_t shared_bytes,
            const std::function<void()>& kernel) {
    if (num_threads % kWarpSize != 0 || shared_bytes > kMaxSharedBytes) {
        fail("a launch of this shape");
    }
    block.kernel = &kernel;
    block.warps.resize(num_threads / kWarpSize);
    while (block.fibers.size() < num_threads) {
        block.fibers.emplace_back().stack = std::make_unique_for_overwrite<char[]>(kStackSize);
    }
    block_size = {num_threads, 1, 1};
    grid_size = {num_blocks, 1, 1};
    char* const shared = reinterpret_cast<char*>(shared_memory);
    ASAN_POISON_MEMORY_REGION(shared + shared_bytes, kMaxSharedBytes - shared_bytes);
    for (unsigned index = 0; index < num_blocks; ++index) {
        block_index = {index, 0, 0};
        std::memset(shared, 0xa5, shared_bytes);  // kernels must not rely on earlier content
        run_block(num_threads);
    }
    ASAN_UNPOISON_MEMORY_REGION(shared, kMaxSharedBytes);
}

}  // namespace cuda_on_host

alignas(128) uint4 shared_memory[cuda_on_host::kMaxSharedBytes / sizeof(uint4)];
