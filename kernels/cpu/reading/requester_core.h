// Keeps a thread that answers requests on the core of who makes them, where that saves time.
#pragma once

#include <sched.h>

#include <cstdint>

namespace gompfs {

// Who walks a tree asks for one name or directory after the other and waits for each answer. When
// it and the thread that answers are on two cores, each of these has gone to sleep when it is
// woken, which takes several times as long as to answer; on one core, they take turns. So a thread
// that got many requests in a row of the same requester moves to its core, until it gets another
// one. For one thread, which this is made by.
class RequesterCore {
  public:
    RequesterCore();

    // Takes note of a request, after its answer; `thread` is who made it, 0 where that is not
    // known.
    void follow(std::uint32_t thread);

    // Lets the thread run on all cores again: before it does anything else than a short answer, and
    // before it starts other threads, which would stay where it is.
    void leave();

  private:
    void move_to(int core);

    cpu_set_t all_;  // where the thread may run
    bool is_useful_;
    std::uint32_t requester_ = 0;
    unsigned num_in_a_row_ = 0;
    int core_ = -1;  // -1: all
};

}  // namespace gompfs
