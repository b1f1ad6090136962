// Implements word lists and their merge into one dictionary; see word_list.h.
//
// The merge is cut into up to 128 ranges at words of the longest list, and each range is merged by
// one thread with a binary heap (Merger). Each range numbers its words from 0; afterwards the
// numbers are shifted by the sizes of the ranges before. The cuts depend on the words only, not on
// the number of threads.
#include "text/word_list.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/cancellation.h"
#include "common/parallel.h"
#include "common/shared_prefix.h"
#include "text/numbers.h"
#include "text/word_prefix.h"

namespace gompfs {

void WordList::append(std::string_view word) {
    std::size_t shared = shared_prefix(last_, word, WordList::kMaxSharedPrefix);
    if (size_ % kRestartInterval == 0) {
        shared = 0;
        restarts_.push_back(bytes_.size());
    }
    bytes_.push_back(static_cast<std::uint8_t>(shared));
    append_number(bytes_, word.size() - shared);
    bytes_.insert(bytes_.end(), word.begin() + shared, word.end());
    last_.assign(word);
    ++size_;
}

std::string_view WordList::restart_word(std::size_t restart) const {
    const std::uint8_t* next = bytes_.data() + restarts_[restart] + 1;
    const std::uint64_t size = read_number(next);
    return {reinterpret_cast<const char*>(next), size};
}

std::uint32_t WordList::restart_before(std::string_view from) const {
    std::size_t low = 0, high = restarts_.size();
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        (restart_word(middle) < from ? low : high) =
            restart_word(middle) < from ? middle + 1 : middle;
    }
    return low == 0 ? 0 : static_cast<std::uint32_t>(low - 1) * kRestartInterval;
}

WordCursor::WordCursor(const WordList& list, std::string_view from)
    : list_(&list), next_(list.bytes_.data()), index_(list.restart_before(from)) {
    if (index_ != 0) {
        next_ += list.restarts_[index_ / WordList::kRestartInterval];
    }
}

bool WordCursor::next() {
    if (index_ == list_->size_) {
        return false;
    }
    word_.resize(*next_++);
    const std::uint64_t size = read_number(next_);
    word_.append(reinterpret_cast<const char*>(next_), size);
    next_ += size;
    prefix_ = word_prefix(word_);
    ++index_;
    return true;
}

namespace {

// Cursors of all lists, the smallest word first: a binary heap ordered by the first eight bytes of
// the words, then by the words.
class Merger {
  public:
    Merger(const std::vector<WordList>& lists, std::string_view from, const std::string* to)
        : to_(to) {
        cursors_.reserve(lists.size());
        for (std::uint32_t list = 0; list < lists.size(); ++list) {
            WordCursor& cursor = cursors_.emplace_back(lists[list], from);
            bool more = cursor.next();
            while (more && cursor.word() < from) {
                more = cursor.next();
            }
            if (more && is_inside(cursor)) {
                heap_.push_back({cursor.prefix(), list});
            }
        }
        for (std::size_t at = heap_.size() / 2; at-- > 0;) {
            sift_down(at);
        }
    }

    bool empty() const { return heap_.empty(); }
    const WordCursor& smallest() const { return cursors_[list_of_smallest()]; }
    std::size_t list_of_smallest() const { return heap_.front().list; }

    void advance() {
        WordCursor& cursor = cursors_[list_of_smallest()];
        if (cursor.next() && is_inside(cursor)) {
            heap_.front().prefix = cursor.prefix();
        } else {
            heap_.front() = heap_.back();
            heap_.pop_back();
        }
        sift_down(0);
    }

  private:
    struct Item {
        std::uint64_t prefix;
        std::uint32_t list;
    };

    bool is_inside(const WordCursor& cursor) const {
        return to_ == nullptr || cursor.word() < *to_;
    }

    bool is_less(const Item& left, const Item& right) const {
        return left.prefix != right.prefix
                   ? left.prefix < right.prefix
                   : cursors_[left.list].word() < cursors_[right.list].word();
    }

    // The next word of a list is rarely among the smallest. So its position in the heap is searched
    // from the bottom upwards, which takes half the comparisons.
    void sift_down(const std::size_t top) {
        if (top >= heap_.size()) {
            return;
        }
        const Item item = heap_[top];
        std::size_t at = top;
        for (std::size_t child; (child = 2 * at + 1) < heap_.size(); at = child) {
            if (child + 1 < heap_.size() && is_less(heap_[child + 1], heap_[child])) {
                ++child;
            }
            heap_[at] = heap_[child];
        }
        for (; at > top && is_less(item, heap_[(at - 1) / 2]); at = (at - 1) / 2) {
            heap_[at] = heap_[(at - 1) / 2];
        }
        heap_[at] = item;
    }

    std::vector<WordCursor> cursors_;  // one per list
    std::vector<Item> heap_;
    const std::string* to_;
};

// Merges the words of [from, to) and numbers them from 0 on.
DictionaryRange merge_range(const std::vector<WordList>& lists, std::string_view from,
                            const std::string* to, std::vector<std::vector<std::uint32_t>>& ranks) {
    DictionaryRange range;
    std::string last;
    CancellationPoint point;
    for (Merger merger(lists, from, to); !merger.empty(); merger.advance()) {
        point();
        const std::string_view word = merger.smallest().word();
        if (range.num_words == 0 || word != last) {
            const std::size_t shared = shared_prefix(last, word, WordList::kMaxSharedPrefix);
            range.shared_lengths.push_back(static_cast<std::uint8_t>(shared));
            append_number(range.suffix_lengths, word.size() - shared);
            range.suffixes.insert(range.suffixes.end(), word.begin() + shared, word.end());
            ++range.num_words;
            last.assign(word);
        }
        ranks[merger.list_of_smallest()][merger.smallest().index()] = range.num_words - 1;
    }
    return range;
}

// Chooses words that cut the longest list into ranges of about equal size. The cuts must not depend
// on the number of threads: the first word of a range shares no prefix, so the bytes of the section
// would depend on it too.
std::vector<std::string> choose_cuts(const std::vector<WordList>& lists) {
    constexpr std::uint32_t kMaxRanges = 128;
    constexpr std::uint32_t kMinWordsOfRange = 1024;
    std::vector<std::string> cuts;
    const auto longest = std::max_element(
        lists.begin(), lists.end(),
        [](const WordList& left, const WordList& right) { return left.size() < right.size(); });
    if (longest == lists.end()) {
        return cuts;
    }
    const std::uint32_t num_ranges = std::min(kMaxRanges, longest->size() / kMinWordsOfRange);
    WordCursor cursor(*longest, {});
    for (std::uint32_t range = 1; range < num_ranges; ++range) {
        while (cursor.next() && cursor.index() < longest->size() / num_ranges * range) {
        }
        cuts.emplace_back(cursor.word());
    }
    return cuts;
}

}  // namespace

std::vector<DictionaryRange> merge_word_lists(const std::vector<WordList>& lists,
                                              unsigned num_threads,
                                              std::vector<std::vector<std::uint32_t>>& ranks) {
    ranks.clear();
    for (const WordList& list : lists) {
        ranks.emplace_back(list.size());
    }
    const std::vector<std::string> cuts = choose_cuts(lists);
    std::vector<DictionaryRange> ranges(cuts.size() + 1);
    parallel_for(ranges.size(), num_threads, [&](std::size_t index) {
        const std::string_view from =
            index == 0 ? std::string_view() : std::string_view(cuts[index - 1]);
        ranges[index] =
            merge_range(lists, from, index < cuts.size() ? &cuts[index] : nullptr, ranks);
    });
    // The ranges are numbered from 0. The words of a list that belong to a range are consecutive:
    // finds them and shifts their numbers.
    parallel_for(lists.size(), num_threads, [&](std::size_t list) {
        std::uint32_t base = 0;
        std::size_t index = 0;
        for (std::size_t range = 0; range < ranges.size(); base += ranges[range++].num_words) {
            std::size_t end = ranks[list].size();
            if (range < cuts.size()) {
                WordCursor cursor(lists[list], cuts[range]);
                while (cursor.next() && cursor.word() < cuts[range]) {
                }
                throw_if_cancelled();
                const bool found = lists[list].size() != 0 && cursor.word() >= cuts[range];
                end = found ? cursor.index() : ranks[list].size();
            }
            for (; index < end; ++index) {
                ranks[list][index] += base;
            }
        }
    });
    return ranges;
}

// A range shares nothing with the range before, so ranges are expanded independently.
Dictionary expand_ranges(std::vector<DictionaryRange> ranges, unsigned num_threads) {
    std::vector<std::uint64_t> first_words{0}, first_bytes{0};
    for (const DictionaryRange& range : ranges) {
        first_words.push_back(first_words.back() + range.num_words);
        first_bytes.push_back(std::accumulate(range.shared_lengths.begin(),
                                              range.shared_lengths.end(),
                                              first_bytes.back() + range.suffixes.size()));
    }
    Dictionary dictionary;
    dictionary.starts.resize(first_words.back() + 1);
    dictionary.bytes.resize(first_bytes.back());
    parallel_for(ranges.size(), num_threads, [&](std::size_t index) {
        const DictionaryRange range = std::move(ranges[index]);
        const std::uint8_t* length = range.suffix_lengths.data();
        auto suffix = range.suffixes.begin();
        std::uint64_t* start = &dictionary.starts[first_words[index]];
        char* const begin = dictionary.bytes.data() + first_bytes[index];
        const char* previous = begin;
        char* next = begin;
        for (const std::uint8_t shared : range.shared_lengths) {
            const auto rest = static_cast<std::ptrdiff_t>(read_number(length));
            std::copy_n(previous, shared, next);
            std::copy_n(suffix, rest, next + shared);
            suffix += rest;
            previous = next;
            next += shared + rest;
            *++start = static_cast<std::uint64_t>(next - dictionary.bytes.data());
        }
    });
    return dictionary;
}

}  // namespace gompfs
