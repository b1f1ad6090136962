// The text of --replace: what is printed in place of each match.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "search/match/match.h"
#include "search/match/search_memory.h"

namespace gompfs::search {

// Lines whose matches were replaced.
struct ReplacedText {
    CountedString text;
    CountedVector<Match> matches;  // the replacements

    // Clears it, for lines of `line_size` bytes. If the new text gets longer than `wanted_size`,
    // its end is not needed.
    void begin(std::size_t line_size, std::size_t wanted_size);
    bool is_complete() const { return text.size() > wanted_size_; }
    // Throws SearchError if the text gets much longer than the lines.
    void append(std::string_view piece);

  private:
    std::size_t wanted_size_ = 0, max_size_ = 0;
};

class Replacement {
  public:
    // $1, $name and ${name} stand for what a group matched, or for nothing if there is no such
    // group; $0 for the match; $$ for a dollar sign. `names` are those of the groups from 1 on,
    // empty for groups without a name.
    Replacement(std::string_view text, const std::vector<std::string>& names);

    bool has_groups() const;
    // Appends what replaces a match. `groups` has two offsets in `text` for each group, from group
    // 0 on, which is the match; kNoGroup if a group has matched nothing.
    static constexpr std::size_t kNoGroup = ~std::size_t{0};
    void append(std::string_view text, std::span<const std::size_t> groups,
                ReplacedText& replaced) const;

  private:
    struct Part {
        std::string literal;  // before the group
        std::size_t group;
    };
    std::vector<Part> parts_;
    std::string rest_;
};

}  // namespace gompfs::search
