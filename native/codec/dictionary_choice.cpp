// Chooses segments of the samples that have the strings which most blocks repeat (COVER: Liao,
// Petri, Moffat and Wirth, "Effective construction of relative Lempel-Ziv dictionaries", WWW 2016;
// zstd has a variant of it).
//
// A string is kStringLength bytes. First, each string is counted once for every kPieceSize bytes in
// which it occurs: as often as about so many blocks need it. Then the samples are cut into epochs,
// as many as segments are wanted, and each epoch gives the segment with the greatest score: the sum
// of the counts of the strings in it, without the first occurrence. Strings that are chosen count
// no longer. In the end the segments with the greatest score per byte come first, because low
// addresses have short codes.
//
// Strings are counted by hash. A table of 2^24 hashes is large enough: with more samples, only
// strings that are rare collide more.
#include "codec/dictionary_choice.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

#include "common/cancellation.h"
#include "common/large_vector.h"
#include "common/little_endian.h"
#include "common/parallel.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

constexpr std::size_t kStringLength = 8;
constexpr std::size_t kSegmentSize = 256;
constexpr std::size_t kSegmentStrings = kSegmentSize - kStringLength;
constexpr std::size_t kMinEpoch = 2 * kSegmentSize;
constexpr std::size_t kPieceSize = 1 << 16;
constexpr int kMinHashBits = 16, kMaxHashBits = 24;

struct Segment {
    std::size_t begin;
    std::size_t size;
    std::uint64_t score;
};

class DictionaryChoice {
  public:
    DictionaryChoice(LargeVector<std::uint8_t> samples, unsigned num_threads)
        : samples_(std::move(samples)),
          num_strings_(samples_.size() - std::min(samples_.size(), kStringLength - 1)),
          hash_bits_(std::clamp(static_cast<int>(std::bit_width(samples_.size())), kMinHashBits,
                                kMaxHashBits)),
          strings_(std::size_t{1} << hash_bits_) {
        count(num_threads);
    }

    std::vector<std::uint8_t> choose(std::size_t size);

  private:
    std::size_t hash_at(std::size_t position) const {
        return (load<std::uint64_t>(samples_.data() + position) * 0x9e3779b185ebca87) >>
               (64 - hash_bits_);
    }
    // Counts of the strings with a hash.
    struct Strings {
        std::uint16_t num_pieces;
        std::uint16_t num_in_window;  // occurrences

        // Their contribution to the score of a window.
        std::uint64_t value() const { return num_pieces - std::uint64_t{num_pieces != 0}; }
    };

    Strings& at(std::size_t position) { return strings_[hash_at(position)]; }
    // Fetches to the cache what the window will soon reach: the table is much larger than caches.
    void prefetch(std::size_t position) const {
        constexpr std::size_t kDistance = 32;
        __builtin_prefetch(&strings_[hash_at(std::min(position + kDistance, num_strings_ - 1))], 1);
    }
    void count(unsigned num_threads);
    void count_share(std::size_t first_hash, std::size_t end_hash);
    std::uint64_t enter(std::size_t position);
    std::uint64_t leave(std::size_t position);
    Segment best_window(std::size_t begin, std::size_t end);
    Segment take(Segment window);

    const LargeVector<std::uint8_t> samples_;
    const std::size_t num_strings_;
    const int hash_bits_;
    ZeroVector<Strings> strings_;  // by hash
};

// Each thread counts some of the hashes, in all samples.
void DictionaryChoice::count(unsigned num_threads) {
    const std::size_t num_shares = std::max(num_threads, 1u);
    parallel_for(num_shares, num_threads, [&](std::size_t share) {
        count_share(strings_.size() * share / num_shares,
                    strings_.size() * (share + 1) / num_shares);
    });
}

void DictionaryChoice::count_share(std::size_t first_hash, std::size_t end_hash) {
    constexpr std::uint16_t kMaxCount = std::numeric_limits<std::uint16_t>::max();
    ZeroVector<std::uint16_t> last_piece(end_hash - first_hash);
    for (std::size_t begin = 0; begin < num_strings_; begin += kPieceSize) {
        throw_if_cancelled();
        const auto piece = static_cast<std::uint16_t>(begin / kPieceSize + 1);
        const std::size_t end = std::min(begin + kPieceSize, num_strings_);
        for (std::size_t position = begin; position < end; ++position) {
            const std::size_t hash = hash_at(position);
            if (hash < first_hash || hash >= end_hash || last_piece[hash - first_hash] == piece) {
                continue;
            }
            last_piece[hash - first_hash] = piece;
            std::uint16_t& count = strings_[hash].num_pieces;
            count = std::min<std::uint16_t>(count, kMaxCount - 1) + 1;
        }
    }
}

// Adds a string to the window, and returns what the score gains by it.
std::uint64_t DictionaryChoice::enter(std::size_t position) {
    Strings& strings = at(position);
    return strings.num_in_window++ == 0 ? strings.value() : 0;
}

// Takes a string out of the window, and returns what the score loses by it.
std::uint64_t DictionaryChoice::leave(std::size_t position) {
    Strings& strings = at(position);
    return --strings.num_in_window == 0 ? strings.value() : 0;
}

// The window of an epoch, given by its first and last strings, with the greatest score.
Segment DictionaryChoice::best_window(std::size_t begin, std::size_t end) {
    static_assert(kSegmentStrings <= std::numeric_limits<std::uint16_t>::max());
    Segment best{begin, kSegmentStrings, 0};
    std::uint64_t score = 0;
    std::size_t first = begin;
    for (std::size_t position = begin; position < end; ++position) {
        if (position - first == kSegmentStrings) {
            score -= leave(first++);
        }
        prefetch(position);
        score += enter(position);
        if (score > best.score) {
            best = {first, position + 1 - first, score};
        }
    }
    for (; first < end; ++first) {
        leave(first);
    }
    return best;
}

// Takes the strings of a window, so that they no longer count. Returns their bytes, without those
// strings at both ends that add nothing to the score.
Segment DictionaryChoice::take(Segment window) {
    std::size_t begin = window.begin, end = window.begin + window.size;
    while (begin < end && at(begin).value() == 0) {
        ++begin;
    }
    while (end > begin && at(end - 1).value() == 0) {
        --end;
    }
    for (std::size_t position = begin; position < end; ++position) {
        at(position).num_pieces = 0;
    }
    return {begin, end - begin + kStringLength - 1, window.score};
}

std::vector<std::uint8_t> DictionaryChoice::choose(std::size_t size) {
    const std::size_t num_epochs = std::max<std::size_t>(size / kSegmentSize, 1);
    const std::size_t epoch = std::max(samples_.size() / num_epochs, kMinEpoch);
    std::vector<Segment> segments;
    for (std::size_t begin = 0; begin < num_strings_; begin += epoch) {
        throw_if_cancelled();
        const Segment window = best_window(begin, std::min(begin + epoch, num_strings_));
        if (window.score != 0) {
            segments.push_back(take(window));
        }
    }
    std::ranges::stable_sort(segments, [](const Segment& left, const Segment& right) {
        return left.score * right.size > right.score * left.size;
    });
    std::vector<std::uint8_t> dictionary;
    for (const Segment& segment : segments) {
        const auto first = samples_.begin() + static_cast<std::ptrdiff_t>(segment.begin);
        const std::size_t taken = std::min(segment.size, size - dictionary.size());
        dictionary.insert(dictionary.end(), first, first + static_cast<std::ptrdiff_t>(taken));
    }
    return dictionary;
}

}  // namespace

std::vector<std::uint8_t> choose_dictionary(std::span<const Bytes> samples, std::size_t size,
                                            unsigned num_threads) {
    if (size > kMaxDictionarySize) {
        throw std::invalid_argument("a dictionary has at most 1 MiB");
    }
    std::size_t total = 0;
    for (const Bytes sample : samples) {
        total += sample.size();
    }
    LargeVector<std::uint8_t> joined(total);
    auto end = joined.begin();
    for (const Bytes sample : samples) {
        end = std::copy(sample.begin(), sample.end(), end);
    }
    return DictionaryChoice(std::move(joined), num_threads).choose(size);
}

}  // namespace gompfs
