// Goes over the facts of many symbols; see symbol_facts.h.
#include "search/grammar/symbol_facts.h"

#include "common/copy.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kAtOnce = 16;

// What symbols come to together.
struct Sums {
    Facts all = 0, adjacent = 0;
    std::uint32_t size = 0;

    void add(const Facts* symbol) {
        const Facts before = symbol[-1];
        all |= *symbol;
        adjacent |= facts::is_adjacent(before, *symbol);
        size += (*symbol & facts::kSize) - facts::takes_space(before, *symbol) / facts::kSeparator;
    }
};

}  // namespace

GOMPFS_TARGET_CLONES std::size_t add_sizes(const Facts* symbols, std::size_t count,
                                           std::uint64_t& size, Facts& adjacent) {
    std::size_t at = 0;
    std::uint64_t total = 0;
    for (; at + kAtOnce <= count; at += kAtOnce) {
        Sums sums;
        for (std::size_t index = 0; index < kAtOnce; ++index) {
            sums.add(symbols + at + index);
        }
        if ((sums.all & facts::kSplitter) != 0) {
            break;
        }
        total += sums.size;
        adjacent |= sums.adjacent;
    }
    Sums sums;
    for (; at < count && (symbols[at] & facts::kSplitter) == 0; ++at) {
        sums.add(symbols + at);
    }
    total += sums.size;
    adjacent |= sums.adjacent;
    size += total;
    return at;
}

GOMPFS_TARGET_CLONES std::size_t find_facts(const Facts* symbols, std::size_t count, Facts wanted) {
    std::size_t at = 0;
    for (; at + kAtOnce <= count; at += kAtOnce) {
        Facts all = 0;
        for (std::size_t index = 0; index < kAtOnce; ++index) {
            all |= symbols[at + index];
        }
        if ((all & wanted) != 0) {
            break;
        }
    }
    while (at < count && (symbols[at] & wanted) == 0) {
        ++at;
    }
    return at;
}

}  // namespace gompfs::search
