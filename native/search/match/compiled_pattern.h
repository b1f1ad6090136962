// A pattern compiled by PCRE2, and compiled once more with callouts when it turns out to be slow.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "search/pattern/pcre.h"
#include "search/pattern/pcre_text.h"

namespace gompfs::search {

// Immutable for its users, and used by any number of threads.
class CompiledPattern {
  public:
    // Throws PatternError.
    CompiledPattern(PcreText text, bool is_utf8, bool has_groups, bool is_crlf);

    const pcre2_code* code() const { return code_.get(); }

    // The names of the groups, from that of group 1 on; empty for those without one.
    std::vector<std::string> group_names() const;

    // With callouts before all items; null if the pattern is too large for that.
    const pcre2_code* code_with_callouts() const;

  private:
    Code compile(std::uint32_t flags, int& error) const;

    const PcreText text_;
    const std::uint32_t flags_;
    const bool is_crlf_;
    Code code_;
    mutable std::once_flag has_callouts_;
    mutable Code code_with_callouts_;
};

}  // namespace gompfs::search
