// The interface of parsers. A parser cuts the content of a block into sequences, which a codec
// then encodes.
//
// The lazy parser obeys the rule of dependency elimination if it is requested (DE; Gompresso,
// Sitaridi et al., ICPP 2016, section 4): a match copies only bytes that are final before its group
// of sequences begins, or literals of its own group. Then the matches of a group can be copied in
// any order. docs/format.md states the rule exactly.
#pragma once

#include <cstdint>

namespace gompfs {

constexpr int kMinLevel = 1;
constexpr int kMaxLevel = 8;

class DictionarySearch;

// A string of literals, then one match. match_length is 0 if the sequence has no match.
// match_offset is an address in the dictionary if it has the bit kFromDictionary
// (shared/dictionary_addresses.h).
struct Sequence {
    std::uint32_t literal_length;
    std::uint32_t match_length;
    std::uint32_t match_offset;
};

// The properties of the codec that encodes the sequences.
struct ParserLimits {
    std::uint32_t min_match_length;
    std::uint32_t max_literal_length;
    std::uint32_t max_match_length;
    std::uint32_t max_match_offset;
    int group_size_log2;
    bool dependency_elimination;
    bool strict_sources;  // with dependency elimination: no source in the open group, literals
                          // neither
    bool entropy_coded;
    const DictionarySearch* dictionary = nullptr;  // with entropy coding; null for none
};

struct SearchEffort {
    int chain_length;  // number of candidates checked per position
    int nice_length;   // a match of this length is taken without looking for a longer one
    std::uint32_t lazy_steps = 0;  // number of following positions checked for a better match
    // Such a match must also end later than the one before, unless a rule limits sources.
    bool later_ends_later = false;
    bool finds_short = false;  // with entropy coding: also take matches of three bytes
    bool skips = false;        // search fewer positions where matches are rare
    // Parse backwards unless a rule limits sources: the two limits that then count. 0: never.
    int backward_chain_length = 0;
    int backward_nice_length = 0;
};

}  // namespace gompfs
