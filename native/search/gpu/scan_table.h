// What a GPU searches blocks of text for, to tell which of them may have matches: a set of literals
// of which every match has one, or an automaton that finds all matches (kernels/search).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/pattern/pattern_syntax.h"
#include "search/pattern/required_literals.h"

namespace gompfs::search {

struct ScanTable {
    enum class Kind { none, literals, automaton };

    Kind kind = Kind::none;             // none: every block may have matches
    std::vector<std::uint8_t> bytes;    // a LiteralTable or an AutomatonTable
    std::size_t shared_bytes = 0;       // shared memory of the kernel
    bool is_unsure_of_folding = false;  // blocks with letters that fold to k or s may have matches
};

// `required` are the literals of the pattern. An automaton is not used for a pattern that may match
// several lines. The kernel may have max_shared_bytes of shared memory, at least 16 KiB.
ScanTable make_scan_table(const Node& pattern, const RequiredLiterals& required, bool is_multi_line,
                          std::size_t max_shared_bytes);

}  // namespace gompfs::search
