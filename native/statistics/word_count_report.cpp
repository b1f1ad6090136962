// Sorts and writes word counts; see word_count_report.h.
//
// Sorting by count is a counting sort, since most counts are small; only words with large counts
// are sorted by comparison. The first piece is small and is made without expanding the dictionary
// of a section, so that a reader of the first lines does not wait. All pieces are cut from the
// sizes of their lines alone, so a piece can be made without those before it.
#include "statistics/word_count_report.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>

#include "common/parallel.h"

namespace gompfs {
namespace {

constexpr std::size_t kStep = 64;  // lines; pieces are cut at multiples of this
// Small, because a reader waits for it.
constexpr std::size_t kFirstPieceSize = Report::kPieceSize / 16;

// The class of a count in the counting sort. Class 0 has all large counts, which are sorted
// afterwards; class c above 0 has the words that occur kSmall - c times.
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

WordCountReport::WordCountReport(std::vector<CountedWords> sources, bool by_count,
                                 std::uint64_t top, unsigned num_threads)
    : sources_(std::move(sources)), num_threads_(std::max(num_threads, 1u)) {
    check_sizes();
    const CountedSection* const section = only_section();
    if (section == nullptr) {
        words_.emplace(dictionaries());
    }
    add_up();
    choose_order(by_count);
    if (top != 0) {
        lines_.resize(std::min<std::uint64_t>(lines_.size(), top));
    }
    if (section != nullptr && top == 0) {
        size_ = measure(*section);
        return;
    }
    std::call_once(are_cut_, [&] {
        if (section != nullptr) {
            words_.emplace(dictionaries());
        }
        size_ = cut_pieces();
    });
}

void WordCountReport::check_sizes() const {
    for (const CountedWords& source : sources_) {
        const std::size_t num_words =
            source.section != nullptr ? source.section->words().size() : source.dictionary->size();
        if (source.counts.size() != num_words) {
            throw std::invalid_argument("the number of counts differs from the number of words");
        }
    }
}

const CountedSection* WordCountReport::only_section() const {
    return sources_.size() == 1 ? sources_[0].section : nullptr;
}

std::vector<const Dictionary*> WordCountReport::dictionaries() const {
    std::vector<const Dictionary*> dictionaries;
    for (const CountedWords& source : sources_) {
        dictionaries.push_back(source.section == nullptr
                                   ? source.dictionary
                                   : &source.section->dictionary(num_threads_));
    }
    return dictionaries;
}

// The sum of all counts must not overflow, whatever the grammars of a hostile archive stand for.
void WordCountReport::check_counts() const {
    std::uint64_t sum = 0;
    for (const CountedWords& source : sources_) {
        for (const std::uint64_t count : source.counts) {
            sum = std::min(sum + std::min(count, kMaxTokens), kMaxTokens);
        }
    }
    if (sum >= kMaxTokens) {
        throw std::invalid_argument("there are 2^62 words or more to count");
    }
}

void WordCountReport::add_up() {
    if (sources_.size() == 1) {
        counts_ = sources_[0].counts;
        return;
    }
    check_counts();
    sums_ = WordCounts(words_->size());
    counts_ = sums_;
    for (std::size_t source = 0; source < sources_.size(); ++source) {
        const std::span<const std::uint64_t> counts = sources_[source].counts;
        parallel_for(num_threads_, num_threads_, [&](std::size_t part) {
            const auto end = static_cast<std::uint32_t>(counts.size() * (part + 1) / num_threads_);
            auto number = static_cast<std::uint32_t>(counts.size() * part / num_threads_);
            CancellationPoint point;
            for (; number < end; ++number) {
                point();
                sums_[words_->rank(source, number)] += counts[number];
            }
        });
    }
}

void WordCountReport::choose_order(bool by_count) {
    // Each thread has a range of the words. In each class, its lines follow those of the ranges
    // before.
    std::vector<std::array<std::size_t, kSmall>> offsets(num_threads_);
    const auto for_each_word = [&](std::size_t range, auto&& take) {
        const std::size_t end = counts_.size() * (range + 1) / num_threads_;
        for (std::size_t rank = counts_.size() * range / num_threads_; rank < end; ++rank) {
            if (counts_[rank] != 0) {
                take(static_cast<std::uint32_t>(rank),
                     offsets[range][count_class(counts_[rank], by_count)]);
            }
        }
    };
    parallel_for(num_threads_, num_threads_, [&](std::size_t range) {
        offsets[range].fill(0);
        for_each_word(range, [](std::uint32_t, std::size_t& size) { ++size; });
    });
    std::size_t num_lines = 0, num_large = 0;
    for (std::size_t count = 0; count < kSmall; ++count) {
        for (auto& of_range : offsets) {
            num_lines += std::exchange(of_range[count], num_lines);
        }
        num_large = count == 0 ? num_lines : num_large;
    }
    lines_.resize(num_lines);
    parallel_for(num_threads_, num_threads_, [&](std::size_t range) {
        for_each_word(range,
                      [&](std::uint32_t rank, std::size_t& offset) { lines_[offset++] = rank; });
    });
    if (by_count) {
        std::stable_sort(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(num_large),
                         [&](std::uint32_t left, std::uint32_t right) {
                             return counts_[left] > counts_[right];
                         });
    }
}

// The size of the text, computed from the size of each word in their order.
std::uint64_t WordCountReport::measure(const CountedSection& section) const {
    std::atomic<std::uint64_t> total = 0;
    parallel_for(section.words().num_ranges(), num_threads_, [&](std::size_t range) {
        std::uint64_t of_range = 0;
        section.words().for_each_size(range, [&](std::uint32_t rank, std::uint64_t word_size) {
            of_range += counts_[rank] == 0 ? 0 : word_size + num_digits(counts_[rank]) + 2;
        });
        total += of_range;
    });
    return total;
}

std::uint64_t WordCountReport::line_size(std::uint32_t rank) const {
    return words_->word(rank).size() + num_digits(counts_[rank]) + 2;
}

const std::vector<std::size_t>& WordCountReport::piece_starts() const {
    std::call_once(are_cut_, [this] {
        words_.emplace(dictionaries());
        cut_pieces();
    });
    return piece_starts_;
}

// Cuts the pieces; returns the size of the text.
std::uint64_t WordCountReport::cut_pieces() const {
    std::vector<std::uint64_t> sizes((lines_.size() + kStep - 1) / kStep);
    parallel_for(num_threads_, num_threads_, [&](std::size_t range) {
        const std::size_t end = sizes.size() * (range + 1) / num_threads_;
        CancellationPoint point;
        for (std::size_t step = sizes.size() * range / num_threads_; step < end; ++step) {
            const std::size_t last = std::min(lines_.size(), (step + 1) * kStep);
            point();
            for (std::size_t line = step * kStep; line < last; ++line) {
                sizes[step] += line_size(lines_[line]);
            }
        }
    });
    std::uint64_t size = 0, piece_size = kPieceSize - kFirstPieceSize;
    for (std::size_t step = 0; step < sizes.size(); ++step) {
        if (piece_size >= kPieceSize) {
            piece_starts_.push_back(step * kStep);
            piece_size = 0;
        }
        piece_size += sizes[step];
        size += sizes[step];
    }
    if (!lines_.empty()) {
        piece_starts_.push_back(lines_.size());
    }
    return size;
}

std::string WordCountReport::piece(std::size_t index) const {
    if (index == 0 && only_section() != nullptr) {
        return first_piece(*only_section());
    }
    const std::vector<std::size_t>& starts = piece_starts();
    std::string text;
    text.reserve(kPieceSize + kPieceSize / 8);
    for (std::size_t line = starts[index]; line < starts[index + 1]; ++line) {
        append_line(text, words_->word(lines_[line]), lines_[line]);
    }
    return text;
}

// Cuts the piece as cut_pieces would.
std::string WordCountReport::first_piece(const CountedSection& section) const {
    std::string text;
    for (std::size_t line = 0; line < lines_.size(); ++line) {
        if (line % kStep == 0 && text.size() >= kFirstPieceSize) {
            break;
        }
        append_line(text, section.words().word(lines_[line]), lines_[line]);
    }
    return text;
}

void WordCountReport::append_line(std::string& text, std::string_view word,
                                  std::uint32_t rank) const {
    text.append(word).push_back('\t');
    append_count(text, counts_[rank]);
    text.push_back('\n');
}

}  // namespace gompfs
