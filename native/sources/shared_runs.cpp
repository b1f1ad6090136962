// Finds runs that two contents share; see shared_runs.h.
//
// A table has the positions of the base by a hash of the kHashed bytes there; positions of one hash
// are linked in order: of bytes that repeat, the first ones have the longest runs. At each position
// of the content, first the base's bytes that follow the last run are compared, and those at the
// same distance from it: a changed line is most often followed by the old ones. Then come a few
// positions of the table. The longest run is taken, and extended backwards to the run before.
#include "sources/shared_runs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace gompfs {
namespace {

constexpr std::size_t kHashed = 16;
static_assert(kHashed <= kLeastSharedRun);
constexpr int kMaxTried = 8;               // positions of one hash
constexpr std::size_t kLongEnough = 1024;  // no longer run is looked for
constexpr std::uint32_t kNone = ~std::uint32_t{0};

std::uint64_t word_at(const std::uint8_t* bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return word;
}

class Positions {
  public:
    explicit Positions(Bytes base)
        : bits_(std::max(static_cast<int>(std::bit_width(base.size())), 8)),
          first_(std::size_t{1} << bits_, kNone),
          next_(base.size() < kHashed ? 0 : base.size() - kHashed + 1) {
        for (std::size_t at = next_.size(); at-- > 0;) {
            std::uint32_t& first = first_[hash(base.data() + at)];
            next_[at] = std::exchange(first, static_cast<std::uint32_t>(at));
        }
    }

    std::uint32_t first(const std::uint8_t* bytes) const { return first_[hash(bytes)]; }
    std::uint32_t next(std::uint32_t at) const { return next_[at]; }

  private:
    std::size_t hash(const std::uint8_t* bytes) const {
        const std::uint64_t mixed =
            (word_at(bytes) * 0x9e3779b97f4a7c15 ^ word_at(bytes + 8)) * 0xbf58476d1ce4e5b9;
        return mixed >> (64 - bits_);
    }

    int bits_;
    std::vector<std::uint32_t> first_;
    std::vector<std::uint32_t> next_;  // by position
};

std::size_t common_size(Bytes left, Bytes right) {
    const std::size_t most = std::min(left.size(), right.size());
    std::size_t size = 0;
    while (size + 8 <= most && word_at(left.data() + size) == word_at(right.data() + size)) {
        size += 8;
    }
    while (size < most && left[size] == right[size]) {
        ++size;
    }
    return size;
}

class RunFinder {
  public:
    RunFinder(Bytes content, Bytes base, std::size_t least)
        : content_(content), base_(base), least_(least), positions_(base) {}

    std::vector<SharedRun> find() {
        for (std::size_t at = 0; at + least_ <= content_.size();) {
            SharedRun run = best_at(at);
            if (run.size < least_) {
                ++at;
                continue;
            }
            const std::size_t end = runs_.empty() ? 0 : runs_.back().begin + runs_.back().size;
            while (run.begin > end && run.base_begin > 0 &&
                   content_[run.begin - 1] == base_[run.base_begin - 1]) {
                --run.begin, --run.base_begin, ++run.size;
            }
            runs_.push_back(run);
            at = run.begin + run.size;
        }
        return std::move(runs_);
    }

  private:
    SharedRun best_at(std::size_t at) const {
        SharedRun best{at, 0, 0};
        if (!runs_.empty()) {
            const SharedRun& last = runs_.back();
            try_base(best, last.base_begin + last.size);
            try_base(best, last.base_begin + (at - last.begin));
        }
        std::uint32_t base = positions_.first(content_.data() + at);
        for (int tried = 0; base != kNone && tried < kMaxTried && best.size < kLongEnough;
             ++tried) {
            try_base(best, base);
            base = positions_.next(base);
        }
        return best;
    }

    void try_base(SharedRun& best, std::size_t base_begin) const {
        if (base_begin < base_.size()) {
            const std::size_t size =
                common_size(content_.subspan(best.begin), base_.subspan(base_begin));
            if (size > best.size) {
                best.base_begin = base_begin;
                best.size = size;
            }
        }
    }

    const Bytes content_, base_;
    const std::size_t least_;
    const Positions positions_;
    std::vector<SharedRun> runs_;
};

}  // namespace

std::vector<SharedRun> shared_runs(Bytes content, Bytes base, std::size_t least) {
    return RunFinder(content, base, std::max(least, kLeastSharedRun)).find();
}

}  // namespace gompfs
