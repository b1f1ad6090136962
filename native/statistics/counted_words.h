// Words and how often each occurs: what the reports word count and sort consist of.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/large_vector.h"

namespace gompfs {

// Words in no particular order, each once.
class CountedWords {
  public:
    CountedWords() = default;
    CountedWords(const CountedWords&) = delete;
    CountedWords& operator=(const CountedWords&) = delete;
    virtual ~CountedWords() = default;

    std::uint32_t num_words() const { return static_cast<std::uint32_t>(counts_.size()); }
    std::uint64_t count(std::uint32_t number) const { return counts_[number]; }
    virtual std::string_view word(std::uint32_t number) const = 0;

  protected:
    LargeVector<std::uint64_t> counts_;
};

}  // namespace gompfs
