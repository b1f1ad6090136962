// Implements the following of a requester; see core_follower.h.
//
// The requester's core is field 39 of /proc/PID/stat. It is read after every 32 requests in a row,
// which is rare enough to cost little and often enough to follow a requester that the scheduler
// moves. On a machine with one core nothing is done.
#include "fuse/core_follower.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace gompfs {

namespace {

// Number of requests in a row between two looks at the requester's core.
constexpr unsigned kRow = 32;
// Field in /proc/PID/stat (proc(5)), counted from the end of the name in parentheses.
constexpr int kProcessorField = 37;

// The core that a thread last ran on; -1 if the kernel does not say.
int core_of(std::uint32_t thread) {
    std::ifstream file("/proc/" + std::to_string(thread) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::string_view rest(text);
    const std::size_t end_of_name = rest.rfind(')');
    rest.remove_prefix(end_of_name == rest.npos ? rest.size() : end_of_name);
    for (int field = 0; field < kProcessorField; ++field) {
        const std::size_t space = rest.find(' ');
        rest.remove_prefix(space == rest.npos ? rest.size() : space + 1);
    }
    int core = -1;
    std::from_chars(rest.data(), rest.data() + rest.size(), core);
    return core;
}

}  // namespace

CoreFollower::CoreFollower()
    : is_useful_(sched_getaffinity(0, sizeof all_, &all_) == 0 && CPU_COUNT(&all_) > 1) {}

void CoreFollower::follow(std::uint32_t thread) {
    if (thread == 0 || !is_useful_) {
        return;
    }
    if (thread != requester_) {
        leave();
        requester_ = thread;
    }
    if (++num_in_a_row_ % kRow == 0) {
        move_to(core_of(thread));
    }
}

void CoreFollower::leave() {
    num_in_a_row_ = 0;
    if (core_ >= 0) {
        core_ = -1;
        sched_setaffinity(0, sizeof all_, &all_);
    }
}

void CoreFollower::move_to(int core) {
    if (core == core_ || core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(core, &all_)) {
        return;
    }
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    if (sched_setaffinity(0, sizeof only, &only) == 0) {
        core_ = core;
    }
}

}  // namespace gompfs
