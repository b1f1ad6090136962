// Joins parts; see part_groups.h. The root of a group is the roots of its parts, one after another,
// followed by all their rules. A word that several parts have is one word of the group. A file that
// continues from one part in the next loses the splitter between them.
#include "text/part_groups.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <utility>

#include "common/parallel.h"

namespace gompfs {
namespace {

// A group has more symbols only if it is a single part. Smaller groups let several threads share
// small archives.
constexpr std::size_t kMaxGroupSymbols = std::size_t{1} << 19;
constexpr std::size_t kMinGroups = 64;

// Numbers words in the order in which they are first seen: a hash table with open addressing.
class WordNumbers {
  public:
    explicit WordNumbers(std::size_t max_words)
        : slots_(std::bit_ceil(2 * max_words + 1), kFree), mask_(slots_.size() - 1) {}

    std::uint32_t find_or_add(std::uint32_t word) {
        constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;
        std::size_t slot = (word * kMultiplier >> 32) & mask_;
        while (slots_[slot] != kFree && words_[slots_[slot]] != word) {
            slot = (slot + 1) & mask_;
        }
        if (slots_[slot] == kFree) {
            slots_[slot] = static_cast<std::uint32_t>(words_.size());
            words_.push_back(word);
        }
        return slots_[slot];
    }
    std::vector<std::uint32_t> take() { return std::move(words_); }

  private:
    static constexpr std::uint32_t kFree = 0xffffffff;
    std::vector<std::uint32_t> slots_;  // indexes in words_
    std::size_t mask_;
    std::vector<std::uint32_t> words_;
};

class GroupBuilder {
  public:
    explicit GroupBuilder(std::span<Part> parts) : parts_(parts) {}

    Part build() {
        number_words();
        group_.continues = parts_.front().continues;
        group_.rules.starts.push_back(0);
        std::size_t num_symbols = 0, num_rules = 1;
        for (const Part& part : parts_) {
            num_symbols += part.rules.symbols.size();
            num_rules += part.rules.size() - 1;
        }
        group_.rules.symbols.reserve(num_symbols);
        group_.rules.starts.reserve(num_rules + 1);
        for (std::size_t index = 0; index < parts_.size(); ++index) {
            append_root(index);
        }
        group_.rules.starts.push_back(group_.rules.symbols.size());
        for (std::size_t index = 0; index < parts_.size(); ++index) {
            append_rules(index);
        }
        return std::move(group_);
    }

  private:
    void number_words() {
        std::size_t num_words = 0;
        for (const Part& part : parts_) {
            num_words += part.words.size();
        }
        WordNumbers numbers(num_words);
        std::uint32_t num_rules = 0;  // besides the root
        for (Part& part : parts_) {
            for (std::uint32_t& word : part.words) {
                word = numbers.find_or_add(word);
            }
            first_rules_.push_back(num_rules);
            num_rules += part.rules.size() - 1;
        }
        group_.words = numbers.take();
    }

    void append_root(std::size_t index) {
        const Part& part = parts_[index];
        const bool goes_on = index + 1 < parts_.size() && parts_[index + 1].continues;
        const auto first = static_cast<std::ptrdiff_t>(index != 0 && part.continues ? 1 : 0);
        group_.inos.insert(group_.inos.end(), part.inos.begin() + first, part.inos.end());
        group_.num_tokens = std::min(group_.num_tokens + part.num_tokens, kMaxTokens);
        append_symbols(index, 0, part.rules.starts[1] - (goes_on ? 1 : 0));
    }

    // Frees the part.
    void append_rules(std::size_t index) {
        const Part& part = parts_[index];
        for (std::uint32_t rule = 1; rule < part.rules.size(); ++rule) {
            append_symbols(index, part.rules.starts[rule], part.rules.starts[rule + 1]);
            group_.rules.starts.push_back(group_.rules.symbols.size());
        }
        parts_[index] = {};
    }

    void append_symbols(std::size_t index, std::uint64_t begin, std::uint64_t end) {
        const Part& part = parts_[index];
        const auto num_words = static_cast<std::uint32_t>(part.words.size());
        const auto offset = static_cast<std::uint32_t>(group_.words.size()) + first_rules_[index];
        for (std::uint64_t at = begin; at < end; ++at) {
            const Symbol symbol = part.rules.symbols[at];
            group_.rules.symbols.push_back(symbol < num_words    ? part.words[symbol]
                                           : symbol == kSplitter ? kSplitter
                                                                 : symbol - num_words + offset);
        }
    }

    const std::span<Part> parts_;
    std::vector<std::uint32_t> first_rules_;  // by part: number of the rules of the parts before
    Part group_;
};

}  // namespace

std::vector<Part> group_parts(std::vector<Part> parts, unsigned num_threads) {
    std::size_t total = 0;
    for (const Part& part : parts) {
        total += part.rules.symbols.size();
    }
    const std::size_t limit = std::min(kMaxGroupSymbols, total / kMinGroups);
    std::vector<std::size_t> starts{0};
    std::size_t num_symbols = 0;
    for (std::size_t index = 0; index < parts.size(); ++index) {
        const std::size_t size = parts[index].rules.symbols.size();
        if (index != starts.back() && num_symbols + size > limit) {
            starts.push_back(index);
            num_symbols = 0;
        }
        num_symbols += size;
    }
    starts.push_back(parts.size());
    std::vector<Part> groups(parts.empty() ? 0 : starts.size() - 1);
    parallel_for(groups.size(), num_threads, [&](std::size_t index) {
        const std::span<Part> of_group(parts.data() + starts[index],
                                       starts[index + 1] - starts[index]);
        groups[index] =
            of_group.size() == 1 ? std::move(of_group[0]) : GroupBuilder(of_group).build();
    });
    return groups;
}

}  // namespace gompfs
