// What becomes of the lines that a search finds: text, JSON, or values for Python.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "search/matcher.h"

namespace gompfs::search {

// A line, or with --multiline several lines.
struct FoundLines {
    std::string_view bytes;  // with the line feed, if there is one
    std::uint64_t line_number;
    std::uint64_t file_offset;
    std::span<const Match> matches;  // in `bytes`; empty if the options do not need them
    // With --replace, the text to print, in which `matches` are the replacements. Else that of
    // `bytes`. Without --multiline, it has no line feed at its end.
    std::string_view printed = bytes;
    std::size_t num_matches = matches.size();  // in `bytes`
};

// What was found in a file.
struct FileCounts {
    std::uint64_t num_matched_lines = 0;  // with --multiline: how often lines were found together
    std::uint64_t num_lines = 0;          // all of these lines
    std::uint64_t num_matches = 0;
    std::uint64_t num_bytes = 0;                 // searched
    std::optional<std::uint64_t> binary_offset;  // of a NUL that was found
    bool is_cut = false;                         // the search ended at the NUL
};

// Called for each file in turn, on one thread.
class LineSink {
  public:
    virtual ~LineSink() = default;
    virtual void begin_file(std::string_view path) = 0;
    virtual void matched(const FoundLines& lines) = 0;
    virtual void context(const FoundLines& line) = 0;
    virtual void gap() = 0;  // between lines of context that do not follow each other
    virtual void end_file(const FileCounts& counts) = 0;
    // What the sink wrote since the last call, and whether a separator belongs before it, if there
    // was output before.
    struct Output {
        std::string text;
        bool needs_separator = false;
    };
    virtual Output take_output() = 0;
};

}  // namespace gompfs::search
