// Reads a grammar section on several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "grammar/grammar.h"
#include "grammar/section.h"
#include "grammar/section_cursor.h"
#include "grammar/section_words.h"

namespace gompfs {

// A section whose pieces have been located; their content is checked when they are read. The bytes
// must outlive the object. All functions throw std::invalid_argument, naming what is wrong.
class GrammarSection {
  public:
    GrammarSection(std::span<const std::uint8_t> bytes, unsigned num_threads);

    WordRule word_rule() const { return head_.word_rule; }
    BuilderKind builder() const { return head_.builder; }
    std::size_t num_parts() const { return head_.num_parts; }
    SectionWords& words() { return words_; }
    const SectionWords& words() const { return words_; }

    // Calls take_range for every range of words, and for every part the function that make_taker
    // returns for the thread, with the part's number and bytes, in any order. If anything throws,
    // the results must be discarded.
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
