// Writes a parsed pattern in the syntax of PCRE2, so that it means what it means in ripgrep.
//
// One pattern has up to two texts, because PCRE2 is several times faster without UTF-8:
// - `ascii` is for texts without bytes above 0x7f, where both match the same. Most files are such
//   texts.
// - `utf8` is for all others. Bytes that are not UTF-8 match nothing.
// A pattern that switches Unicode off to match bytes, (?-u:\xFF), has only the text `bytes`, which
// is for all files.
//
// In searches for lines, nothing matches a line feed: classes leave it out. So a match never
// extends over the end of a line, and a whole file can be searched in one call.
#pragma once

#include <string>

#include "search/pattern/pattern_syntax.h"

namespace gompfs::search {

enum class TextKind { ascii, utf8, bytes };

// What must surround a match.
enum class MatchBounds { any, words, lines };

struct PcreText {
    std::string pattern;
    bool is_caseless = false;  // all of the pattern
    bool is_pcre = false;      // it was given in this syntax
};

// Whether a pattern matches bytes that are not UTF-8. Throws PatternError if only parts of it do.
bool matches_bytes(const Node& pattern);

// Whether a pattern can match a line feed, or looks at one. (It may return true for one that does
// not.) With is_crlf, that includes carriage returns.
bool matches_newline(const Node& pattern, bool is_crlf = false);

// With is_crlf, a carriage return before a line feed belongs to the end of a line.
PcreText write_pcre(const Node& pattern, TextKind kind, MatchBounds bounds, bool is_multi_line,
                    bool is_crlf);

}  // namespace gompfs::search
