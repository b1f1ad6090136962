// Counts the words of parts; see parts_word_counts.h. Threads take one part after another. The
// counts of words that several parts use are added up with atomic operations.
#include "statistics/parts_word_counts.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/cancellation.h"
#include "common/failures.h"
#include "common/parallel.h"
#include "text/part_words.h"
#include "text/token_check.h"

namespace gompfs {
namespace {

// The ranges of a part's text that counted files have, by offset.
std::vector<WeightedRange> ranges_of(std::span<const TextExtent> extents,
                                     const CountedFiles& files) {
    std::vector<WeightedRange> ranges;
    for (const TextExtent& extent : extents) {
        if (ranges.empty() || ranges.back().offset != extent.offset) {
            ranges.push_back({extent.offset, extent.size, 0});
        } else if (ranges.back().size != extent.size) {
            fail_extent();
        }
        ranges.back().weight += files.contains(extent.ino);
    }
    return ranges;
}

// The sum, but at most kMaxTokens.
std::uint64_t limited_sum(std::span<const std::uint64_t> counts) {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : counts) {
        sum = std::min(sum + std::min(count, kMaxTokens), kMaxTokens);
    }
    return sum;
}

// The words of parts without a head, by their bytes. The same words may be in heads and in the
// section, because only heads know which words are shared: then their counts move there.
class LooseWords {
  public:
    void count(const StoredPart& part, std::span<const WeightedRange> ranges,
               const Tokenizer& tokenizer) {
        const PartWords words = words_of_text(part.plain_text(), ranges, tokenizer);
        std::vector<std::uint64_t> counts(words.num_words());
        for (std::size_t piece = 0; piece < words.pieces.size(); ++piece) {
            for (auto at = words.pieces[piece].begin; at < words.pieces[piece].end; ++at) {
                counts[words.root[at]] += ranges[piece].weight;
            }
        }
        const std::lock_guard lock(mutex_);
        for (std::uint32_t number = 0; number < counts.size(); ++number) {
            const std::string_view word = words.local_words[number];
            counts_[std::string(word)] += counts[number];
            may_be_here_[Hash()(word) % may_be_here_.size()] = true;
        }
    }

    // Moves the counts of the words of a list. Not while words are counted.
    void move_to(const TokenList& words, std::uint64_t* counts) {
        if (counts_.empty()) {
            return;
        }
        for (std::uint32_t number = 0; number < words.size(); ++number) {
            const std::string_view word = words[number];
            if (!may_be_here_[Hash()(word) % may_be_here_.size()]) {
                continue;
            }
            if (const auto found = counts_.find(word); found != counts_.end()) {
                const std::lock_guard lock(mutex_);
                counts[number] += std::exchange(found->second, 0);
            }
        }
    }

    // The words that are in no list, and their counts.
    std::pair<TokenList, std::vector<std::uint64_t>> take_rest() {
        std::pair<TokenList, std::vector<std::uint64_t>> rest;
        for (const auto& [word, count] : counts_) {
            if (count != 0) {
                rest.first.append(word);
                rest.second.push_back(count);
            }
        }
        return rest;
    }

  private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view word) const {
            return XXH3_64bits(word.data(), word.size());
        }
    };

    std::mutex mutex_;  // protects the counts
    std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> counts_;
    // A bit for each hash: almost all words that are looked up are not here.
    std::vector<bool> may_be_here_ = std::vector<bool>(std::size_t{1} << 22);
};

}  // namespace

// Counts the words of one part after another.
class PartsWordCounts::Counter {
  public:
    Counter(const StoredParts& parts, std::span<const TextExtent> extents,
            const WordSection& section, const Tokenizer& tokenizer, const CountedFiles& files)
        : parts_(parts),
          extents_(split_by_part(extents, parts.size())),
          section_(section),
          tokenizer_(tokenizer),
          files_(files),
          shared_(section.words().size()),
          words_(parts.size()),
          local_(parts.size()),
          ends_(parts.size()) {}

    void count(unsigned num_threads) {
        std::vector<std::size_t> loose, others;
        for (std::size_t part = 0; part < parts_.size(); ++part) {
            (parts_.has_head(part) ? others : loose).push_back(part);
        }
        // Loose words first: other parts take them over.
        parallel_for_all(loose.size(), num_threads,
                         [&](std::size_t index) { count_text(loose[index]); });
        loose_.move_to(section_.words(), shared_.data());
        parallel_for_all(others.size(), num_threads,
                         [&](std::size_t index) { count_grammar(others[index]); });
        check_joints(ends_, extents_, tokenizer_.rule());
    }

    void move_to(PartsWordCounts& counts, unsigned num_threads) {
        auto [words, counts_of_words] = loose_.take_rest();
        words_.push_back(std::move(words));
        local_.push_back(std::move(counts_of_words));
        counts.local_words_ = std::move(words_);
        local_.insert(local_.begin(), std::move(shared_));
        counts.join_counts(std::move(local_), num_threads);
    }

  private:
    void count_text(std::size_t index) {
        const StoredPart part = parts_.read(index);
        loose_.count(part, ranges_of(extents_[index], files_), tokenizer_);
        ends_[index] = ends_of_text(part.plain_text(), tokenizer_);
    }

    void count_grammar(std::size_t index) {
        CountedPartWords counted = count_words_of_grammar(parts_.read(index), section_, tokenizer_,
                                                          ranges_of(extents_[index], files_));
        add_shared(counted);
        counted.counts.resize(counted.local_words.size());
        loose_.move_to(counted.local_words, counted.counts.data());
        local_[index].assign(counted.counts.begin(), counted.counts.end());
        words_[index] = std::move(counted.local_words);
        ends_[index] = counted.ends;
    }

    void add_shared(const CountedPartWords& counted) {
        constexpr std::size_t kAhead = 32;
        const std::vector<std::uint32_t>& words = counted.global_words;
        const std::uint64_t* const counts = counted.counts.data() + counted.local_words.size();
        for (std::size_t index = 0; index < words.size(); ++index) {
            __builtin_prefetch(&shared_[words[std::min(index + kAhead, words.size() - 1)]], 1);
            std::atomic_ref(shared_[words[index]])
                .fetch_add(counts[index], std::memory_order_relaxed);
        }
    }

    const StoredParts& parts_;
    const std::vector<std::span<const TextExtent>> extents_;
    const WordSection& section_;
    const Tokenizer& tokenizer_;
    const CountedFiles& files_;
    std::vector<std::uint64_t> shared_;              // counts of the words of the section
    std::vector<TokenList> words_;                   // local words, by part
    std::vector<std::vector<std::uint64_t>> local_;  // their counts
    std::vector<PartEnds> ends_;
    LooseWords loose_;
};

PartsWordCounts::PartsWordCounts(const StoredParts& parts, std::span<const TextExtent> extents,
                                 Bytes word_section, std::uint64_t max_word_bytes,
                                 const Tokenizer& tokenizer, const CountedFiles& files,
                                 unsigned num_threads)
    : section_(word_section.empty() ? WordSection()
                                    : WordSection(word_section, max_word_bytes, num_threads)) {
    check_tokens(section_, tokenizer, num_threads);
    Counter counter(parts, extents, section_, tokenizer, files);
    counter.count(num_threads);
    counter.move_to(*this, num_threads);
}

// Takes the counts of the words of the section, and then of each part.
void PartsWordCounts::join_counts(std::vector<std::vector<std::uint64_t>> counts,
                                  unsigned num_threads) {
    std::vector<std::size_t> starts{0};
    for (const std::vector<std::uint64_t>& each : counts) {
        starts.push_back(starts.back() + each.size());
    }
    if (starts.back() > std::numeric_limits<std::uint32_t>::max()) {
        throw std::invalid_argument("it has too many words");
    }
    first_numbers_.assign(starts.begin() + 1, starts.end());
    counts_.resize(starts.back());
    std::vector<std::uint64_t> totals(counts.size());  // at most kMaxTokens
    parallel_for(counts.size(), num_threads, [&](std::size_t index) {
        std::copy(counts[index].begin(), counts[index].end(),
                  counts_.begin() + static_cast<std::ptrdiff_t>(starts[index]));
        totals[index] = limited_sum(counts[index]);
        counts[index] = {};
    });
    if (limited_sum(totals) == kMaxTokens) {
        throw std::invalid_argument("there are 2^62 words or more to count");
    }
    std::uint32_t part = 0;
    for (std::uint64_t number = 0; number < counts_.size(); number += kHintStep) {
        while (part + 2 < first_numbers_.size() && first_numbers_[part + 1] <= number) {
            ++part;
        }
        parts_of_words_.push_back(part);
    }
}

std::string_view PartsWordCounts::word(std::uint32_t number) const {
    if (number < section_.words().size()) {
        return section_.words()[number];
    }
    std::size_t part = parts_of_words_[number / kHintStep];
    while (first_numbers_[part + 1] <= number) {
        ++part;
    }
    return local_words_[part][number - first_numbers_[part]];
}

// Words that have the same hash are compared; there are next to none.
void PartsWordCounts::check_that_words_differ() const {
    const auto hash = [&](std::uint32_t number) {
        return XXH3_64bits(word(number).data(), word(number).size());
    };
    std::vector<std::uint64_t> hashes;
    hashes.reserve(num_words());
    CancellationPoint point;
    for (std::uint32_t number = 0; number < num_words(); ++number) {
        point();
        hashes.push_back(hash(number));
    }
    std::sort(hashes.begin(), hashes.end());
    std::vector<std::uint64_t> repeated;
    for (std::size_t index = 1; index < hashes.size(); ++index) {
        if (hashes[index] == hashes[index - 1]) {
            repeated.push_back(hashes[index]);
        }
    }
    std::set<std::string_view> words;
    for (std::uint32_t number = 0; !repeated.empty() && number < num_words(); ++number) {
        if (std::binary_search(repeated.begin(), repeated.end(), hash(number)) &&
            !words.insert(word(number)).second) {
            throw std::invalid_argument("a word of its text is stored twice");
        }
    }
}

}  // namespace gompfs
