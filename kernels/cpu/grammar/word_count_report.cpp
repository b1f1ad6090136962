#include "grammar/word_count_report.h"

#include <algorithm>
#include <array>

#include "common/parallel.h"

namespace gompfs {
namespace {

std::vector<const Dictionary*> dictionaries(const std::vector<CountedWords>& sources) {
    std::vector<const Dictionary*> dictionaries;
    for (const CountedWords& source : sources) {
        dictionaries.push_back(source.dictionary);
    }
    return dictionaries;
}

// Words by falling count are sorted by counting, as most counts are small: class 0 has the words of
// large counts, which are then sorted, class c those that occur kSmall - c times.
constexpr std::uint64_t kSmall = 1024;

std::size_t count_class(std::uint64_t count, bool by_count) {
    return by_count && count < kSmall ? kSmall - count : 0;
}

unsigned num_digits(std::uint64_t count) {
    unsigned digits = 1;
    for (; count >= 10; count /= 10) {
        ++digits;
    }
    return digits;
}

}  // namespace

WordCountReport::WordCountReport(const std::vector<CountedWords>& sources, bool by_count,
                                 std::uint64_t top, unsigned num_threads)
    : words_(dictionaries(sources)) {
    add_up(sources, num_threads);
    choose_order(by_count, num_threads);
    if (top != 0) {
        lines_.resize(std::min<std::uint64_t>(lines_.size(), top));
    }
    cut_pieces(num_threads);
}

void WordCountReport::add_up(const std::vector<CountedWords>& sources, unsigned num_threads) {
    if (sources.size() == 1) {
        counts_ = sources[0].counts;
        return;
    }
    sums_.resize(words_.size(), 0);
    counts_ = sums_;
    for (std::size_t source = 0; source < sources.size(); ++source) {
        const std::span<const std::uint64_t> counts = sources[source].counts;
        parallel_for(num_threads, num_threads, [&](std::size_t part) {
            const auto end = static_cast<std::uint32_t>(counts.size() * (part + 1) / num_threads);
            auto number = static_cast<std::uint32_t>(counts.size() * part / num_threads);
            for (; number < end; ++number) {
                sums_[words_.rank(source, number)] += counts[number];
            }
        });
    }
}

void WordCountReport::choose_order(bool by_count, unsigned num_threads) {
    // Each thread has a range of the words, and of each class the lines behind those of the ranges
    // before.
    std::vector<std::array<std::size_t, kSmall>> places(num_threads);
    const auto for_each_word = [&](std::size_t range, auto&& take) {
        const std::size_t end = counts_.size() * (range + 1) / num_threads;
        for (std::size_t rank = counts_.size() * range / num_threads; rank < end; ++rank) {
            if (counts_[rank] != 0) {
                take(static_cast<std::uint32_t>(rank),
                     places[range][count_class(counts_[rank], by_count)]);
            }
        }
    };
    parallel_for(num_threads, num_threads, [&](std::size_t range) {
        places[range].fill(0);
        for_each_word(range, [](std::uint32_t, std::size_t& size) { ++size; });
    });
    std::size_t num_lines = 0, num_large = 0;
    for (std::size_t count = 0; count < kSmall; ++count) {
        for (auto& of_range : places) {
            num_lines += std::exchange(of_range[count], num_lines);
        }
        num_large = count == 0 ? num_lines : num_large;
    }
    lines_.resize(num_lines);
    parallel_for(num_threads, num_threads, [&](std::size_t range) {
        for_each_word(range,
                      [&](std::uint32_t rank, std::size_t& place) { lines_[place++] = rank; });
    });
    if (by_count) {
        std::stable_sort(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(num_large),
                         [&](std::uint32_t left, std::uint32_t right) {
                             return counts_[left] > counts_[right];
                         });
    }
}

std::uint64_t WordCountReport::line_size(std::uint32_t rank) const {
    return words_.word(rank).size() + num_digits(counts_[rank]) + 2;
}

void WordCountReport::cut_pieces(unsigned num_threads) {
    constexpr std::size_t kStep = 64;
    std::vector<std::uint64_t> sizes((lines_.size() + kStep - 1) / kStep);
    parallel_for(num_threads, num_threads, [&](std::size_t range) {
        const std::size_t end = sizes.size() * (range + 1) / num_threads;
        for (std::size_t step = sizes.size() * range / num_threads; step < end; ++step) {
            const std::size_t last = std::min(lines_.size(), (step + 1) * kStep);
            for (std::size_t line = step * kStep; line < last; ++line) {
                sizes[step] += line_size(lines_[line]);
            }
        }
    });
    // The first piece is a small one: somebody waits for it.
    std::uint64_t piece_size = kPieceSize - kPieceSize / 16;
    for (std::size_t step = 0; step < sizes.size(); ++step) {
        if (piece_size >= kPieceSize) {
            piece_starts_.push_back(step * kStep);
            piece_size = 0;
        }
        piece_size += sizes[step];
        size_ += sizes[step];
    }
    if (!lines_.empty()) {
        piece_starts_.push_back(lines_.size());
    }
}

std::string WordCountReport::piece(std::size_t index) const {
    std::string text;
    text.reserve(kPieceSize + kPieceSize / 8);
    for (std::size_t line = piece_starts_[index]; line < piece_starts_[index + 1]; ++line) {
        text.append(words_.word(lines_[line])).push_back('\t');
        append_count(text, counts_[lines_[line]]);
        text.push_back('\n');
    }
    return text;
}

}  // namespace gompfs
