// Implements the execution of kernels on the CPU; see cuda_on_host.h.
//
// Fibers have stacks of 64 KiB, which are kept for later CTAs and launches. A fiber that waits in
// meet(), or ends, gives control to the next one in the order of the threads; the last that ends
// gives it back to run_block. Most of a launch is such switches. On x86-64 they are a few
// instructions: swapcontext makes a system call each time. AddressSanitizer is told about every
// switch of stacks, so that it checks the right one.
#include "host/cuda_on_host.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <array>
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

#if defined(__x86_64__)
// Saves the registers that a call preserves on the stack of `from`, and continues on that of `to`.
extern "C" __attribute__((visibility("hidden"))) void switch_stack(void** from, void* to);
asm(R"(
    .text
    .hidden switch_stack
    .globl switch_stack
    .type switch_stack, @function
switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size switch_stack, .-switch_stack
)");
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

// The state in which a fiber was left.
class Context {
  public:
#if defined(__x86_64__)
    void start(char* stack, void (*function)()) {
        // The registers, where switch_stack returns to, and an address that is never returned to.
        void** const top = reinterpret_cast<void**>(stack + kStackSize) - kNumSaved - 2;
        std::memset(static_cast<void*>(top), 0, (kNumSaved + 2) * sizeof *top);
        top[kNumSaved] = reinterpret_cast<void*>(function);
        stack_pointer_ = top;
    }

    void switch_to(const Context& next) { switch_stack(&stack_pointer_, next.stack_pointer_); }

  private:
    static constexpr std::size_t kNumSaved = 6;
    void* stack_pointer_ = nullptr;
#else
    void start(char* stack, void (*function)()) {
        getcontext(&context_);
        context_.uc_stack.ss_sp = stack;
        context_.uc_stack.ss_size = kStackSize;
        context_.uc_link = nullptr;
        makecontext(&context_, function, 0);
        // Otherwise AddressSanitizer's swapcontext clears the whole stack at each switch.
        context_.uc_stack.ss_size = 0;
    }

    void switch_to(const Context& next) { swapcontext(&context_, &next.context_); }

  private:
    ucontext_t context_;
#endif
};

struct Fiber {
    Context context;
    std::unique_ptr<char[]> memory;
    const void* stack = nullptr;
    std::size_t stack_size = 0;
    void* fake_stack = nullptr;
    bool ended = false;
};

// The CTA that is running; there is one at a time.
struct Block {
    std::vector<Fiber> fibers;  // at least one per thread
    std::vector<Meeting> warps;
    Meeting all;
    std::array<Meeting, kNumBarriers> pairs;  // of two warps each
    const std::function<void()>* kernel = nullptr;
    unsigned running = 0;
    unsigned num_switches = 0;  // since a thread has reached an operation
    Fiber caller;               // of run_block
};

Block block;

void switch_fiber(Fiber& from, const Fiber& to) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(from.ended ? nullptr : &from.fake_stack, to.stack,
                                   to.stack_size);
#endif
    from.context.switch_to(to.context);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

void set_running(unsigned thread) {
    block.running = thread;
    thread_index = {thread, 0, 0};
}

// Runs the other fibers, until it is this one's turn again.
void leave_fiber() {
    if (++block.num_switches > 2 * block_size.x) {
        fail("threads wait for each other at different operations");
    }
    const unsigned thread = block.running;
    Fiber& fiber = block.fibers[thread];
    unsigned next = thread;
    do {
        next = next + 1 == block_size.x ? 0 : next + 1;
    } while (next != thread && block.fibers[next].ended);
    if (next != thread) {
        set_running(next);
        switch_fiber(fiber, block.fibers[next]);
    } else if (fiber.ended) {
        switch_fiber(fiber, block.caller);
    }
}

void run_fiber() {
#if defined(__SANITIZE_ADDRESS__)
    const bool is_first = block.running == 0;  // switched to by the caller
    __sanitizer_finish_switch_fiber(nullptr, is_first ? &block.caller.stack : nullptr,
                                    is_first ? &block.caller.stack_size : nullptr);
#endif
    (*block.kernel)();
    Fiber& fiber = block.fibers[block.running];
    fiber.ended = true;
    for (const Meeting* meeting : {&block.all, &block.warps[block.running / kWarpSize]}) {
        if (meeting->num_waiting != 0) {
            fail(std::string("a thread ends while others wait at ") + meeting->operation);
        }
    }
    leave_fiber();
}

const std::uint64_t* meet(Meeting& meeting, unsigned member, std::uint64_t value,
                          const char* operation) {
    if (meeting.num_waiting != 0 && std::strcmp(meeting.operation, operation) != 0) {
        fail(std::string("one thread is at ") + operation + ", another at " + meeting.operation);
    }
    block.num_switches = 0;
    meeting.operation = operation;
    meeting.brought[member] = value;
    const std::uint64_t round = meeting.round;
    if (++meeting.num_waiting == meeting.num_members) {
        meeting.given = meeting.brought;
        meeting.num_waiting = 0;
        ++meeting.round;
    }
    while (meeting.round == round) {
        leave_fiber();
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
    for (Meeting& pair : block.pairs) {
        set_up(pair, 2 * kWarpSize);
    }
    for (unsigned thread = 0; thread < num_threads; ++thread) {
        Fiber& fiber = block.fibers[thread];
        fiber.ended = false;
        // The red zones of the fiber that ended on this stack.
        ASAN_UNPOISON_MEMORY_REGION(fiber.memory.get(), kStackSize);
        fiber.context.start(fiber.memory.get(), run_fiber);
    }
    block.num_switches = 0;
    set_running(0);
    switch_fiber(block.caller, block.fibers[0]);
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

void meet_two_warps(unsigned barrier) {
    if (barrier >= kNumBarriers) {
        fail("a barrier with a number too large");
    }
    Meeting& pair = block.pairs[barrier];
    meet(pair, pair.num_waiting, 0, "barrier of two warps");
}

void launch(unsigned num_blocks, unsigned num_threads, std::size_t shared_bytes,
            const std::function<void()>& kernel) {
    if (num_threads % kWarpSize != 0 || shared_bytes > kMaxSharedBytes) {
        fail("a launch of this shape");
    }
    block.kernel = &kernel;
    block.warps.resize(num_threads / kWarpSize);
    while (block.fibers.size() < num_threads) {
        Fiber& fiber = block.fibers.emplace_back();
        fiber.memory = std::make_unique_for_overwrite<char[]>(kStackSize);
        fiber.stack = fiber.memory.get();
        fiber.stack_size = kStackSize;
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
