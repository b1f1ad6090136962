// Which paths are searched: the globs of --glob and --iglob, and those of the types of --type. They
// have the meaning of ripgrep's, which is that of lines in .gitignore, the other way round: a glob
// includes, and one with ! before it excludes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search/matcher.h"

namespace gompfs::search {

// A list of globs. Throws PatternError.
class GlobList {
  public:
    explicit GlobList(const std::vector<std::string>& globs,
                      const std::vector<std::string>& caseless = {});

    // What the last glob that matches says: whether the path is searched, or entered if it is a
    // directory. If none matches, a file is excluded if there are globs that include.
    std::optional<bool> decide(std::string_view path, bool is_directory) const;
    bool is_empty() const { return globs_.empty(); }

  private:
    void add(std::string_view glob, bool is_caseless);

    struct Glob {
        std::unique_ptr<Matcher> matcher;
        bool excludes, is_for_directories;
    };
    std::vector<Glob> globs_;
    bool has_including_ = false;
};

class PathGlobs {
  public:
    // `types` are the globs of file types, for names of files. They count where no other glob
    // decides.
    PathGlobs(GlobList globs, GlobList types)
        : globs_(std::move(globs)), types_(std::move(types)) {}

    bool includes(std::string_view path, bool is_directory) const {
        auto decision = globs_.decide(path, is_directory);
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
