// Writes word counts; see word_count_report.h.
//
// By count, words are grouped by their counts with a sort of numbers; a group is sorted by bytes
// only when one of its lines is needed. Half of the words of a text occur once: they are the last
// group, and its largest.
#include "statistics/word_count_report.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/cancellation.h"
#include "common/parallel.h"
#include "text/word_prefix.h"

namespace gompfs {
namespace {

constexpr std::size_t kStep = 64;  // lines; pieces are cut at multiples of this
// Small, because a reader waits for it.
constexpr std::size_t kFirstPieceSize = Report::kPieceSize / 16;
constexpr std::size_t kNumBuckets = 256;
constexpr std::size_t kLargeGroup = 10'000;
constexpr std::size_t kSliceSize = std::size_t{1} << 16;  // words

// Counts below kNumClasses have a class each, higher ones before lower ones. All others are class
// 0.
constexpr std::uint64_t kNumClasses = 1024;

std::size_t class_of_count(std::uint64_t count) {
    return count < kNumClasses ? kNumClasses - count : 0;
}

}  // namespace

WordCountReport::WordCountReport(std::shared_ptr<const CountedWords> words, bool by_count,
                                 std::uint64_t top, unsigned num_threads)
    : words_(std::move(words)), top_(top), num_threads_(std::max(num_threads, 1u)) {
    group_lines(by_count);
}

// Most counts are small: a counting sort by the class of the count. Returns where each class
// begins, and where the last one ends.
std::vector<std::size_t> WordCountReport::sort_by_class(bool by_count) {
    const std::uint32_t num_words = words_->num_words();
    const std::size_t num_classes = by_count ? kNumClasses : 1;
    const std::size_t num_slices = (num_words + kSliceSize - 1) / kSliceSize;
    std::vector<std::vector<std::uint32_t>> places(num_slices);  // by class: first their numbers
    const auto for_each_line = [&](std::size_t slice, auto&& take) {
        const std::size_t end = std::min<std::size_t>((slice + 1) * kSliceSize, num_words);
        for (std::size_t word = slice * kSliceSize; word < end; ++word) {
            const std::uint64_t count = words_->count(static_cast<std::uint32_t>(word));
            if (count != 0) {
                take(static_cast<std::uint32_t>(word), by_count ? class_of_count(count) : 0);
            }
        }
    };
    parallel_for(num_slices, num_threads_, [&](std::size_t slice) {
        places[slice].resize(num_classes);
        for_each_line(slice, [&](std::uint32_t, std::size_t number) { ++places[slice][number]; });
    });
    std::vector<std::size_t> starts;
    std::uint32_t end = 0;
    for (std::size_t number = 0; number < num_classes; ++number) {
        starts.push_back(end);
        for (std::vector<std::uint32_t>& of_slice : places) {
            of_slice[number] = std::exchange(end, end + of_slice[number]);
        }
    }
    starts.push_back(end);
    lines_.resize(end);
    parallel_for(num_slices, num_threads_, [&](std::size_t slice) {
        for_each_line(slice, [&](std::uint32_t word, std::size_t number) {
            lines_[places[slice][number]++] = word;
        });
    });
    return starts;
}

void WordCountReport::group_lines(bool by_count) {
    const std::vector<std::size_t> starts = sort_by_class(by_count);
    if (!by_count) {
        groups_.push_back({0, lines_.size()});
        return;
    }
    const auto large_end = lines_.begin() + static_cast<std::ptrdiff_t>(starts[1]);
    std::stable_sort(lines_.begin(), large_end, [&](std::uint32_t left, std::uint32_t right) {
        return words_->count(left) > words_->count(right);
    });
    for (std::size_t line = 0; line < starts[1]; ++line) {
        if (line == 0 || words_->count(lines_[line]) != words_->count(lines_[line - 1])) {
            groups_.push_back({line, line});
        }
        ++groups_.back().end;
    }
    for (std::size_t number = 1; number < kNumClasses; ++number) {
        if (starts[number] != starts[number + 1]) {
            groups_.push_back({starts[number], starts[number + 1]});
        }
    }
}

// Sorts lines by their words.
void WordCountReport::sort_lines(std::span<std::uint32_t> lines) const {
    std::vector<std::string_view> words;
    std::vector<WordPrefix> prefixes;
    for (const std::uint32_t word : lines) {
        words.push_back(words_->word(word));
        prefixes.emplace_back(words.back(), static_cast<std::uint32_t>(prefixes.size()));
    }
    sort_prefixes(prefixes, words);
    const std::vector<std::uint32_t> unsorted(lines.begin(), lines.end());
    std::transform(prefixes.begin(), prefixes.end(), lines.begin(),
                   [&](const WordPrefix& prefix) { return unsorted[prefix.number]; });
}

// Sorts a group. A large one is put into buckets by first byte, which are sorted on all threads.
void WordCountReport::sort_group(std::size_t group) const {
    const auto [begin, end] = groups_[group];
    const std::span lines = std::span(lines_).subspan(begin, end - begin);
    if (lines.size() < kLargeGroup) {
        sort_lines(lines);
        return;
    }
    std::vector<std::vector<std::uint32_t>> buckets(kNumBuckets);
    for (const std::uint32_t word : lines) {
        buckets[static_cast<unsigned char>(words_->word(word)[0])].push_back(word);
    }
    std::vector<std::size_t> starts{0};
    for (const std::vector<std::uint32_t>& bucket : buckets) {
        std::copy(bucket.begin(), bucket.end(),
                  lines.begin() + static_cast<std::ptrdiff_t>(starts.back()));
        starts.push_back(starts.back() + bucket.size());
    }
    parallel_for(kNumBuckets, num_threads_, [&](std::size_t index) {
        throw_if_cancelled();
        sort_lines(lines.subspan(starts[index], buckets[index].size()));
    });
}

std::size_t WordCountReport::line_size(std::uint32_t word) const {
    std::size_t digits = 1;
    for (std::uint64_t count = words_->count(word); count >= 10; count /= 10) {
        ++digits;
    }
    return words_->word(word).size() + digits + 2;
}

void WordCountReport::append_line(std::string& text, std::uint32_t word) const {
    text.append(words_->word(word)).push_back('\t');
    append_count(text, words_->count(word));
    text.push_back('\n');
}

// Without `top`, the size does not depend on the order.
std::optional<std::uint64_t> WordCountReport::size() const {
    if (top_ != 0) {
        return std::nullopt;
    }
    std::uint64_t size = 0;
    for (const std::uint32_t word : lines_) {
        size += line_size(word);
    }
    return size;
}

const std::vector<std::size_t>& WordCountReport::piece_starts() const {
    const std::lock_guard lock(mutex_);
    if (!piece_starts_.empty()) {
        return piece_starts_;
    }
    for (; num_sorted_ < groups_.size(); ++num_sorted_) {
        sort_group(num_sorted_);
    }
    if (top_ != 0) {
        lines_.resize(std::min<std::uint64_t>(lines_.size(), top_));
    }
    std::vector<std::size_t> starts{0};
    std::size_t size = Report::kPieceSize - kFirstPieceSize;
    for (std::size_t line = 0; line < lines_.size(); ++line) {
        if (line % kStep == 0 && line != 0 && size >= Report::kPieceSize) {
            starts.push_back(line);
            size = 0;
        }
        size += line_size(lines_[line]);
    }
    if (!lines_.empty()) {
        starts.push_back(lines_.size());
    }
    piece_starts_ = std::move(starts);
    return piece_starts_;
}

std::string WordCountReport::piece(std::size_t index) const {
    if (index == 0) {
        return first_piece();
    }
    const std::vector<std::size_t>& starts = piece_starts();
    std::string text;
    text.reserve(kPieceSize + kPieceSize / 8);
    for (std::size_t line = starts[index]; line < starts[index + 1]; ++line) {
        append_line(text, lines_[line]);
    }
    return text;
}

// Cuts the piece as piece_starts would, and sorts only what it needs.
std::string WordCountReport::first_piece() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    std::size_t group = 0;
    const std::size_t num_lines =
        top_ == 0 ? lines_.size() : std::min<std::uint64_t>(lines_.size(), top_);
    for (std::size_t line = 0; line < num_lines; ++line) {
        if (line % kStep == 0 && text.size() >= kFirstPieceSize) {
            break;
        }
        while (group < groups_.size() && groups_[group].end <= line) {
            ++group;
        }
        for (; num_sorted_ <= group; ++num_sorted_) {
            sort_group(num_sorted_);
        }
        append_line(text, lines_[line]);
    }
    return text;
}

}  // namespace gompfs
