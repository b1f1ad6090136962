// A grammar section that is being read.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "grammar/grammar.h"
#include "grammar/section_cursor.h"
#include "grammar/section_words.h"

namespace gompfs {

// Where the pieces of a section lie is known, the rest is checked when it is read. The bytes must
// stay. All throw std::invalid_argument, naming what is wrong.
class GrammarSection {
  public:
    GrammarSection(std::span<const std::uint8_t> bytes, unsigned num_threads);

    bool words_of_characters() const { return head_.words_of_characters; }
    BuilderKind builder() const { return head_.builder; }
    std::size_t num_parts() const { return head_.num_parts; }
    SectionWords& words() { return words_; }
    const SectionWords& words() const { return words_; }

    // Gives the ranges of words to `take_range`, which checks or expands each, and the parts with
    // their numbers to what `make_taker` makes for each thread, to be read: in any order. What they
    // took counts only if nothing is thrown.
    using TakeRange = std::function<void(std::size_t)>;
    using TakePart = std::function<void(std::size_t, std::span<const std::uint8_t>)>;
    using MakeTaker = std::function<TakePart()>;
    void read(const TakeRange& take_range, const MakeTaker& make_taker) const;

  private:
    struct Head : SectionHeader {
        explicit Head(SectionCursor& in);
    };

    unsigned num_threads_;
    SectionCursor in_;
    Head head_;
    SectionWords words_;
    std::span<const std::uint8_t> parts_;
};

// Reads and checks a whole section, on up to num_threads threads.
Grammar read_grammar(std::span<const std::uint8_t> section, unsigned num_threads);

}  // namespace gompfs
