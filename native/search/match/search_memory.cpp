// Counts the memory of searches; see search_memory.h.
#include "search/match/search_memory.h"

#include "search/match/match.h"

namespace gompfs::search {

SearchMemory& SearchMemory::of_process() {
    static SearchMemory memory;
    return memory;
}

void SearchMemory::take(std::size_t num_bytes) {
    const std::size_t limit = limit_;
    std::size_t taken = taken_;
    do {
        if (taken > limit || num_bytes > limit - taken) {
            throw SearchError("long lines and their matches take too much memory: more than " +
                              std::to_string(limit >> 20) + " MiB");
        }
    } while (!taken_.compare_exchange_weak(taken, taken + num_bytes));
}

}  // namespace gompfs::search
