// Sorted runs of postings, spilled in compact form and merged (as in an external merge sort).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "common/cancellation.h"
#include "common/spill.h"
#include "statistics/corpus.h"
#include "text/numbers.h"

namespace gompfs {

// The number of times that an n-gram occurs in a file.
struct Posting {
    std::uint32_t term;  // index in a list of keys
    std::uint32_t file;  // 0 if files are counted together
    std::uint64_t count;
};

struct KeyedPosting {
    NgramKey key = 0;
    std::uint32_t file = 0;
    std::uint64_t count = 0;

    bool operator<(const KeyedPosting& other) const {
        return key != other.key ? key < other.key : file < other.file;
    }
};

// A key of any size as a variable-length number.
inline void append_key(std::vector<std::uint8_t>& bytes, NgramKey key) {
    for (; key >= 0x80; key >>= 7) {
        bytes.push_back(static_cast<std::uint8_t>(key) | 0x80);
    }
    bytes.push_back(static_cast<std::uint8_t>(key));
}
inline NgramKey read_key(const std::uint8_t*& next) {
    NgramKey key = 0;
    for (unsigned shift = 0;; shift += 7) {
        const std::uint8_t byte = *next++;
        key |= NgramKey{byte & 0x7fu} << shift;
        if (byte < 0x80) {
            return key;
        }
    }
}

// Postings in the order of (key, file). Each is stored as three numbers: the difference to the
// previous key, the file, and the count. Every kPostingsOfChunk-th posting starts a chunk and is
// stored with its whole key, so that reading can start there.
struct Run {
    static constexpr std::size_t kPostingsOfChunk = 256;

    struct Chunk {
        NgramKey first;
        std::uint64_t offset;
    };
    std::vector<Chunk> chunks;
    std::uint64_t end = 0;  // end of its bytes, which begin with the first chunk
};

class RunWriter {
  public:
    // Adds a posting; postings must be added in order.
    void add(const KeyedPosting& posting) {
        if (num_postings_++ % Run::kPostingsOfChunk == 0) {
            run_.chunks.push_back({posting.key, bytes_.size()});
            last_ = 0;
        }
        append_key(bytes_, posting.key - last_);
        append_number(bytes_, posting.file);
        append_number(bytes_, posting.count);
        last_ = posting.key;
    }
    // Stores the run in `spill`.
    Run finish(Spill& spill);

  private:
    std::vector<std::uint8_t> bytes_;
    NgramKey last_ = 0;
    std::size_t num_postings_ = 0;
    Run run_;
};

// Reads the postings of a run, beginning with the first one of a chunk.
class RunReader {
  public:
    RunReader(const Spill& spill, const Run& run, std::size_t chunk)
        : spill_(&spill), run_(&run), chunk_(chunk), offset_(run.chunks[chunk].offset) {}

    // Reads the next posting; returns false at the end.
    bool next(KeyedPosting& posting) {
        if (end_ - at_ < kLongest && offset_ != run_->end) {
            refill();
        }
        if (at_ == end_) {
            return false;
        }
        if (chunk_ < run_->chunks.size() && position() == run_->chunks[chunk_].offset) {
            posting.key = 0;
            ++chunk_;
        }
        const std::uint8_t* at = bytes_.data() + at_;
        posting.key += read_key(at);
        posting.file = static_cast<std::uint32_t>(read_number(at));
        posting.count = read_number(at);
        at_ = static_cast<std::size_t>(at - bytes_.data());
        return true;
    }

  private:
    static constexpr std::size_t kLongest = 40;  // maximum bytes of a posting: 19 + 5 + 10

    std::uint64_t position() const { return offset_ - (end_ - at_); }
    void refill();

    const Spill* spill_;
    const Run* run_;
    std::size_t chunk_;     // the next chunk
    std::uint64_t offset_;  // offset of the bytes that are not in bytes_ yet
    std::array<std::uint8_t, 2048> bytes_;
    std::size_t at_ = 0, end_ = 0;
};

// Merges runs in the order of (key, file), divided into ranges of keys that can be merged
// independently.
class RunMerger {
  public:
    // The runs must outlive the object.
    RunMerger(const Spill& spill, const std::vector<Run>& runs, std::size_t max_ranges);

    // The number of ranges for about num_postings postings per range. It is limited for many runs,
    // because a range may begin inside a chunk of each run, which must then be read from its start.
    static std::size_t num_ranges_of(const std::vector<Run>& runs, std::size_t num_postings);

    std::size_t num_ranges() const { return cuts_.size() + 1; }

    // Calls take(key, file, count) once for each key and file of a range.
    template <typename Take>
    void merge(std::size_t range, Take&& take) const;

  private:
    struct Source {
        KeyedPosting posting;
        RunReader* reader;
    };

    std::vector<RunReader> readers(std::size_t range) const;
    // Advances to the first posting at or after the start of the range. Returns false if no posting
    // is in the range.
    bool enter(std::size_t range, Source& source) const;
    bool is_inside(std::size_t range, NgramKey key) const {
        return range == cuts_.size() || key < cuts_[range];
    }

    const Spill& spill_;
    const std::vector<Run>& runs_;
    std::vector<NgramKey> cuts_;
};

template <typename Take>
void RunMerger::merge(std::size_t range, Take&& take) const {
    std::vector<RunReader> its_readers = readers(range);
    std::vector<Source> heap;
    for (RunReader& reader : its_readers) {
        Source source{{}, &reader};
        if (enter(range, source)) {
            heap.push_back(source);
        }
    }
    const auto is_after = [](const Source& left, const Source& right) {
        return right.posting < left.posting;
    };
    std::make_heap(heap.begin(), heap.end(), is_after);
    CancellationPoint point;
    while (!heap.empty()) {
        point();
        KeyedPosting sum = heap.front().posting;
        sum.count = 0;
        do {
            Source& first = heap.front();
            sum.count += first.posting.count;
            if (!first.reader->next(first.posting) || !is_inside(range, first.posting.key)) {
                first = heap.back();
                heap.pop_back();
            }
            for (std::size_t at = 0, child; (child = 2 * at + 1) < heap.size(); at = child) {
                child += child + 1 < heap.size() && is_after(heap[child], heap[child + 1]);
                if (!is_after(heap[at], heap[child])) {
                    break;
                }
                std::swap(heap[at], heap[child]);
            }
        } while (!heap.empty() && !(sum < heap.front().posting));
        take(sum.key, sum.file, sum.count);
    }
}

}  // namespace gompfs
