// How often n-grams occur in files, gathered from all parts of a corpus.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/parallel.h"
#include "grammar/corpus.h"
#include "grammar/counting.h"

namespace gompfs {

struct Posting {
    std::uint32_t term;  // a place in the keys of its run
    std::uint32_t file;  // 0 where files are counted together
    std::uint64_t count;
};

// Postings of one part, or of some of its files, in the order of (term, file), each once.
struct Run {
    std::shared_ptr<const std::vector<NgramKey>> keys;  // ascending
    std::vector<Posting> postings;
};

// Counts the bytes that a task holds. What threads do when it is exceeded is to stop.
class MemoryBudget {
  public:
    explicit MemoryBudget(std::uint64_t limit) : limit_(limit) {}

    // Takes bytes; false when there are no more.
    bool take(std::uint64_t bytes) {
        return used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit_;
    }
    bool is_exceeded() const { return used_.load(std::memory_order_relaxed) > limit_; }
    // Throws std::length_error if more was wanted than there is.
    void check() const;

  private:
    const std::uint64_t limit_;
    std::atomic<std::uint64_t> used_{0};
};

struct Traversal {
    bool sequential = false;  // as TADOC does it (sequential.h), which has no choice of direction
    Direction direction = Direction::automatic;
    unsigned num_threads = 1;
};

// The n-grams of all files of the corpus that are not left out. A run may be of one key and file
// more than another. Its memory: 16 bytes for each different (n-gram, file) of a part and for each
// different n-gram, 64 for each n-gram that its rules hold, until the part is counted, and 32 more
// for each posting of a part while these are sorted.
std::vector<Run> gather_postings(const Corpus& corpus, bool per_file, const Traversal& traversal,
                                 MemoryBudget& budget);

// The n-grams over the ends of parts alone, of files that go on from one into the next.
Run gather_over_edges(const Corpus& corpus, bool per_file, unsigned num_threads);

// The runs side by side in the order of (key, file), in ranges of keys.
class RunMerger {
  public:
    explicit RunMerger(const std::vector<Run>& runs, unsigned max_ranges);

    std::size_t num_ranges() const { return cuts_.size() + 1; }

    // Calls take(key, file, count) once for each key and file of a range.
    template <typename Take>
    void merge(std::size_t range, Take&& take) const;

  private:
    struct Cursor {
        const Posting* at;
        const Posting* end;
        const NgramKey* keys;

        NgramKey key() const { return keys[at->term]; }
        bool operator>(const Cursor& other) const {
            const NgramKey mine = key(), its = other.key();
            return mine != its ? mine > its : at->file > other.at->file;
        }
    };

    std::vector<Cursor> cursors(std::size_t range) const;
    static void sift_down(std::vector<Cursor>& heap);

    const std::vector<Run>& runs_;
    std::vector<NgramKey> cuts_;
};

template <typename Take>
void RunMerger::merge(std::size_t range, Take&& take) const {
    std::vector<Cursor> heap = cursors(range);
    while (!heap.empty()) {
        const NgramKey key = heap.front().key();
        const std::uint32_t file = heap.front().at->file;
        std::uint64_t count = 0;
        do {
            count += heap.front().at++->count;
            sift_down(heap);
        } while (!heap.empty() && heap.front().key() == key && heap.front().at->file == file);
        take(key, file, count);
    }
}

}  // namespace gompfs
