// Matches a compiled pattern in bounded time, on one thread.
//
// PCRE2 tries to match at one position after another, and goes back where it fails, so its time may
// grow with a power of the length of a line. A call of PCRE2 cannot be stopped from outside.
// Therefore a call tries only some positions, and at each of them a small number of steps. Where
// these do not suffice, the pattern is matched again as it is compiled for this purpose: with
// callouts, which make matching several times slower, and which check the time and cancellation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "search/match/compiled_pattern.h"
#include "search/match/match.h"

namespace gompfs::search {

// A limit of CPU time, which a callout of PCRE2 checks together with cancellation.
class MatchWatch {
  public:
    void allow(double seconds) { seconds_left_ = seconds; }
    void start() { started_ = now(); }
    void stop() { seconds_left_ -= now() - started_; }

    static int callout(pcre2_callout_block*, void* watch);

  private:
    static double now();
    bool is_over();

    double seconds_left_ = 0, started_ = 0;
    unsigned num_callouts_ = 0;
};

// Methods throw SearchError if a text takes too many steps or too much time.
class BoundedMatch {
  public:
    // Until limits are set, they are those of a text whose lines may have any length.
    BoundedMatch();

    // For a text that is searched next; in a multi-line search, a match may take all of it.
    void set_limits(std::string_view text, bool is_multi_line);

    // The first match at `from` or later.
    std::optional<Match> find(const CompiledPattern& pattern, std::string_view text,
                              std::size_t from);

    // A match again, with its groups: pairs of offsets, valid until the next call. The pattern must
    // have the same groups in all calls.
    std::span<const std::size_t> find_groups(const CompiledPattern& pattern, std::string_view text,
                                             const Match& match);

  private:
    void limit(std::size_t text_size, std::size_t line_size);
    int match(const pcre2_code* code, std::string_view text, std::size_t from, std::uint32_t flags,
              pcre2_match_data* data);
    int match_with_callouts(const CompiledPattern& pattern, std::string_view text,
                            std::size_t from);

    MatchData data_;
    MatchData groups_;
    std::size_t whole_[2] = {};  // a match without its groups
    MatchContext context_;
    JitStack stack_;
    MatchWatch watch_;
    std::size_t num_starts_;   // positions that a call tries, without callouts
    std::uint32_t num_steps_;  // at each position, without callouts
};

}  // namespace gompfs::search
