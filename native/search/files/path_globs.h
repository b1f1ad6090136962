// Which paths are searched: the globs of --glob, and those of the types of --type. They
// have the meaning of ripgrep's, which is that of lines in .gitignore, the other way round: a glob
// includes, and one with ! before it excludes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search/match/matcher.h"

namespace gompfs::search {

// A list of globs. Throws PatternError.
class GlobList {
  public:
    GlobList() = default;
    explicit GlobList(const std::vector<std::string>& globs);

    // Adds a glob of a file of ignore rules, where a [ without a ] is a character.
    void add_rule(std::string_view glob) { add(glob, true); }

    // What the last glob that matches says: whether the path is searched, or entered if it is a
    // directory. If none matches, a file is excluded if there are globs that include.
    std::optional<bool> decide(std::string_view path, bool is_directory) const;
    // What the last glob that matches says: false if it has a ! before it. The path must not begin
    // with a slash. Throws SearchError if a glob takes too many steps.
    std::optional<bool> last_match(std::string_view path, bool is_directory) const;
    bool is_empty() const { return globs_.empty(); }
    std::size_t size() const { return globs_.size(); }
    std::size_t num_patterns() const { return num_patterns_; }  // globs that take time to match

  private:
    struct Glob {
        enum class Kind { pattern, name, end_of_name, path };

        bool matches(std::string_view path, std::string_view name) const;

        Kind kind;
        std::string literal;               // unless it is a pattern
        std::unique_ptr<Matcher> matcher;  // of a pattern
        bool excludes, is_for_directories;
    };

    void add(std::string_view glob, bool is_rule);

    std::vector<Glob> globs_;
    std::size_t num_patterns_ = 0;
    bool has_including_ = false;
};

class PathGlobs {
  public:
    // `types` are the globs of file types, for names of files. They count where no other glob
    // decides.
    PathGlobs(GlobList globs, GlobList types)
        : globs_(std::move(globs)), types_(std::move(types)) {}

    // `is_ignored` tells whether ignore rules leave it out. They count more than types, and less
    // than other globs.
    template <typename IsIgnored>
    bool includes(std::string_view path, bool is_directory, const IsIgnored& is_ignored) const {
        auto decision = globs_.decide(path, is_directory);
        if (!decision && is_ignored()) {
            return false;
        }
        if (!decision && !is_directory) {
            decision = types_.decide(path, false);
        }
        return decision.value_or(true);
    }
    bool is_empty() const { return globs_.is_empty() && types_.is_empty(); }

  private:
    GlobList globs_, types_;
};

}  // namespace gompfs::search
