// Analytics by traversal of the grammar.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/large_vector.h"
#include "grammar/grammar.h"

namespace gompfs {

// How many words each rule of a part stands for; kMaxTokens where it is too many.
std::vector<std::uint64_t> rule_sizes(const Part& part);

// How many words each file of a part has.
std::vector<std::uint64_t> file_sizes(const Part& part);

// Files whose words count.
class CountedFiles {
  public:
    CountedFiles() = default;  // all
    explicit CountedFiles(std::vector<std::uint64_t> inos) : inos_(std::move(inos)) {
        std::sort(inos_->begin(), inos_->end());
    }
    bool contains(std::uint64_t ino) const {
        return !inos_ || std::binary_search(inos_->begin(), inos_->end(), ino);
    }

  private:
    std::optional<std::vector<std::uint64_t>> inos_;
};

using WordCounts = LargeVector<std::uint64_t>;  // by word of a dictionary

// How often each word of the dictionary occurs. Top-down (TADOC): a rule's weight is how often it
// occurs in the text; rules are visited in an order that has every use before the rule, so each is
// visited once.
WordCounts word_counts(const Grammar& grammar, const CountedFiles& files, unsigned num_threads);

// The same of a section, whose parts are counted as they are read and not kept. Throws
// std::invalid_argument where the section is damaged.
struct CountedSection {
    Grammar grammar;  // without parts
    WordCounts counts;
};
CountedSection count_section(std::span<const std::uint8_t> section, const CountedFiles& files,
                             unsigned num_threads);

}  // namespace gompfs
