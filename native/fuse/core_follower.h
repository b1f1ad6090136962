// Moves a thread that answers requests to the core of the program that makes them, where that saves
// time.
//
// A program that walks a tree asks for one name or directory after another and waits for each
// answer. If the program and the answering thread are on two cores, each of them sleeps while the
// other one works, and waking a sleeping core takes several times as long as answering. On one core
// they take turns without sleeping. So after many requests in a row from the same thread, the
// answering thread moves to that thread's core; it may run on all cores again as soon as it gets a
// request from another thread or has longer work to do.
#pragma once

#include <sched.h>

#include <cstdint>

namespace gompfs {

// Follows one requester at a time. Belongs to the thread that constructs it and must be used by
// that thread only.
class CoreFollower {
  public:
    CoreFollower();

    // Reports a request after it was answered. `thread` is the thread that made it, 0 if unknown.
    void follow(std::uint32_t thread);

    // Lets the thread run on all cores again. Must be called before anything that takes longer than
    // a short answer, and before the thread starts other threads, which would inherit the
    // restriction.
    void leave();

  private:
    void move_to(int core);

    cpu_set_t all_;  // the cores that the thread may run on
    bool is_useful_;
    std::uint32_t requester_ = 0;
    unsigned num_in_a_row_ = 0;
    int core_ = -1;  // -1: not restricted
};

}  // namespace gompfs
