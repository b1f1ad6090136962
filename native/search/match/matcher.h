// A pattern ready to search with: compiled by PCRE2, with a literal that finds candidate lines
// faster where every match contains one.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search/match/literal_finder.h"
#include "search/match/literal_set_finder.h"
#include "search/match/match.h"
#include "search/match/replacement.h"
#include "search/pattern/pattern_options.h"
#include "search/pattern/pcre_text.h"
#include "search/pattern/required_literals.h"

namespace gompfs::search {

class BoundedMatch;
class CompiledPattern;

// The same pattern for ASCII texts and for others; if it matches bytes, only for others. Neither if
// a finder finds all matches.
struct CompiledPatterns {
    std::unique_ptr<CompiledPattern> ascii, other;

    const CompiledPattern& of(bool is_ascii) const { return is_ascii && ascii ? *ascii : *other; }
};

// Immutable, and used by any number of threads.
class Matcher {
  public:
    // Throws PatternError.
    explicit Matcher(const PatternOptions& options);
    ~Matcher();
    Matcher(const Matcher&) = delete;
    Matcher& operator=(const Matcher&) = delete;

    bool is_multi_line() const { return is_multi_line_; }
    const RequiredLiterals& required() const { return required_; }
    // The parsed pattern. It takes much memory, so it is parsed again. None if it has the syntax of
    // PCRE2.
    std::optional<Node> pattern() const;
    // The same with the bounds of --word-regexp and --line-regexp, for a search of single lines.
    // None if lines cannot be searched one by one, or may end with a carriage return.
    std::optional<Node> line_pattern() const;

  private:
    friend class MatchSession;

    const PatternOptions options_;
    bool is_multi_line_;
    // Whether a match is looked for in one line after another: PCRE2's syntax may match line feeds.
    bool searches_by_line_ = false;
    RequiredLiterals required_;
    void make_finder();
    void use_pcre();
    bool has_finder() const { return finder_ || set_finder_; }
    CompiledPatterns compile(const Node& pattern, bool has_groups) const;
    void make_replacement();
    std::optional<Match> find_literal(std::string_view text, std::size_t from) const;

    bool is_literal_;  // whether the finder finds all matches; then there is no compiled pattern
    // Of a literal that every match has, or of several of which every match has one; or none.
    std::optional<LiteralFinder> finder_;
    std::optional<LiteralSetFinder> set_finder_;
    bool finder_needs_ascii_ = false;
    CompiledPatterns patterns_;
    std::optional<Replacement> replacement_;
    CompiledPatterns with_groups_;  // the pattern again, if the replacement has groups
};

// Searches texts with a matcher, on one thread. Methods throw SearchError if a text takes too many
// steps.
class MatchSession {
  public:
    explicit MatchSession(const Matcher& matcher);
    ~MatchSession();
    MatchSession(const MatchSession&) = delete;
    MatchSession& operator=(const MatchSession&) = delete;

    // Whether a text may have a match: it has a literal of which every match has one.
    bool may_match(std::string_view text) const;

    // Must be called for a text before it, or a part of it, is searched. Until then, texts are
    // searched in the slow way that suits any text.
    void prepare(std::string_view text);

    // The first match at `from` or later. In a search for lines, `text` must begin at the beginning
    // of a line.
    std::optional<Match> find(std::string_view text, std::size_t from = 0);

    // A match at `from` or later, in the first line that has any; `from` must be the beginning of a
    // line. It need not be the first match of that line.
    std::optional<Match> find_in_lines(std::string_view text, std::size_t from);

    // Replaces the matches in the first `size` bytes of a text, which are whole lines. The matches
    // must be those that find_matches has found there. The matcher must have a replacement. If
    // the new text gets longer than `wanted_size`, its end may be missing.
    void replace(std::string_view text, std::size_t size, std::span<const Match> matches,
                 std::size_t wanted_size, ReplacedText& replaced);

  private:
    const Matcher& matcher_;
    std::unique_ptr<BoundedMatch> bounded_match_;
    bool is_ascii_ = false;
};

}  // namespace gompfs::search
