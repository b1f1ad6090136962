// Whether the text of a part begins and ends with a word, and what follows for a file in two parts.
#pragma once

#include "text/tokenizer.h"

namespace gompfs {

// How the text of a part begins and ends.
struct PartEnds {
    bool begins_with_word = false;
    bool ends_with_separator = false;
};

// Whether a file may continue from one part in another without a word in both.
inline bool can_continue(WordRule rule, const PartEnds& part, const PartEnds& next) {
    // Under the rule `letters`, a character may otherwise begin in one separator and end in
    // another.
    return part.ends_with_separator && (rule != WordRule::letters || next.begins_with_word);
}

}  // namespace gompfs
