// Counts words top-down; see word_counts.h. Weights flow from the files in the root down to rules
// and words (Carrier). A part can be counted while its bytes are being read and checked
// (PartCounter), so a word count of all files needs no second pass and no copy of the rules. If
// only some files are counted, a second pass checks the number of words of the whole part. Parts
// are independent; they add to the common counts with atomic operations.
#include "statistics/word_counts.h"

#include <algorithm>
#include <atomic>

#include "common/parallel.h"
#include "grammar/rule_sizes.h"
#include "grammar/section_part.h"

namespace gompfs {
namespace {

// Sums are limited to kMaxTokens, whatever rules a hostile section has.
void add_to(std::uint64_t& sum, std::uint64_t weight) { sum = std::min(sum + weight, kMaxTokens); }

// Passes weights down through the rules of a part: from each rule to its words and rules. Rules
// must come in an order in which every use of a rule comes before the rule.
class Carrier {
  public:
    // `weights` are those of the words, then of the rules; they must be 0 at the start.
    Carrier(const PartHead& head, const CountedFiles& files, std::vector<std::uint64_t>& weights)
        : head_(head), files_(files), weights_(weights.data()) {}

    void begin(std::uint32_t rule) {
        weight_ = rule == 0 ? weight_of_file() : weights_[head_.words.size() + rule];
    }
    void take(Symbol symbol) {
        if (symbol == kSplitter) [[unlikely]] {
            ++file_;
            weight_ = weight_of_file();
        } else {
            add_to(weights_[symbol], weight_);
        }
    }

  private:
    std::uint64_t weight_of_file() const {
        return file_ < head_.inos.size() && files_.contains(head_.inos[file_]);
    }

    const PartHead& head_;
    const CountedFiles& files_;
    std::uint64_t* const weights_;
    std::size_t file_ = 0;
    std::uint64_t weight_ = 0;
};

// Counts the words of parts one after another. Other threads may add to the same counts meanwhile.
class PartCounter {
  public:
    PartCounter(const CountedFiles& files, WordCounts& total) : files_(&files), total_(&total) {}

    // Counts a part that has been read.
    void count(const Part& part) {
        const Rules& rules = part.rules;
        weights_.assign(part.words.size() + rules.size(), 0);
        Carrier carrier(part, *files_, weights_);
        CancellationPoint point;
        for (std::uint32_t rule = 0; rule < rules.size(); ++rule) {
            point();
            carrier.begin(rule);
            for (std::uint64_t at = rules.starts[rule]; at < rules.starts[rule + 1]; ++at) {
                carrier.take(rules.symbols[at]);
            }
        }
        add_to_total(part);
    }

    // Counts a part while reading and checking it. Returns the number of words that it stands for.
    std::uint64_t count(std::span<const std::uint8_t> bytes) {
        const auto num_words = static_cast<std::uint32_t>(total_->size());
        SectionCursor in(bytes);
        read_part_head(in, num_words, head_);
        read_rule_starts(in, head_.words.size(), starts_);
        weights_.assign(head_.words.size() + starts_.size() - 1, 0);
        Carrier carrier(head_, *files_, weights_);
        read_symbols(
            in, head_, starts_, [&](std::uint32_t rule) { carrier.begin(rule); },
            [&](Symbol symbol) { carrier.take(symbol); });
        throw_if_cancelled();
        const std::uint64_t num_tokens = add_to_total(head_);
        if (files_->contain_all(head_.inos)) {
            check_num_tokens(head_, num_tokens);
        } else {
            Part part;
            read_part(bytes, num_words, part);
            check_num_tokens(part, rule_sizes(part)[0]);
        }
        return head_.num_tokens;
    }

  private:
    std::uint64_t add_to_total(const PartHead& head);

    const CountedFiles* files_;
    WordCounts* total_;
    PartHead head_;
    std::vector<std::uint64_t> starts_;
    std::vector<std::uint64_t> weights_;
};

// Returns the number of words counted, with repetitions.
std::uint64_t PartCounter::add_to_total(const PartHead& head) {
    std::uint64_t num_tokens = 0;
    // An atomic addition waits for memory and later instructions do not overtake it, so the next
    // counts are prefetched.
    constexpr std::size_t kAhead = 16;
    for (std::size_t word = 0; word < head.words.size(); ++word) {
        if (word + kAhead < head.words.size()) {
            __builtin_prefetch(&(*total_)[head.words[word + kAhead]], 1);
        }
        std::atomic_ref((*total_)[head.words[word]])
            .fetch_add(weights_[word], std::memory_order_relaxed);
        add_to(num_tokens, weights_[word]);
    }
    return num_tokens;
}

}  // namespace

WordCounts word_counts(const Grammar& grammar, const CountedFiles& files, unsigned num_threads) {
    WordCounts counts(grammar.dictionary.size());
    parallel_for(grammar.parts.size(), num_threads, [&](std::size_t index) {
        if (files.contain_any(grammar.parts[index].inos)) {
            PartCounter(files, counts).count(grammar.parts[index]);
        }
    });
    return counts;
}

CountedSection::CountedSection(std::span<const std::uint8_t> section, const CountedFiles& files,
                               unsigned num_threads)
    : section_(section, num_threads), counts_(section_.words().size()) {
    TokenSum num_tokens;
    section_.read([this](std::size_t range) { section_.words().check(range); },
                  [&] {
                      return [&num_tokens, counter = PartCounter(files, counts_)](
                                 std::size_t, std::span<const std::uint8_t> part) mutable {
                          num_tokens.add(counter.count(part));
                      };
                  });
    num_tokens.check();
}

const Dictionary& CountedSection::dictionary(unsigned num_threads) const {
    std::call_once(is_expanded_, [&] {
        dictionary_ = section_.words().empty_dictionary();
        parallel_for(section_.words().num_ranges(), num_threads,
                     [this](std::size_t range) { section_.words().expand(range, dictionary_); });
    });
    return dictionary_;
}

}  // namespace gompfs
