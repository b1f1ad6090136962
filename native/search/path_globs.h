// The globs of --glob: which paths are searched. They have the meaning of ripgrep's, which is that
// of lines in .gitignore, the other way round: a glob includes, and one with ! before it excludes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "search/matcher.h"

namespace gompfs::search {

class PathGlobs {
  public:
    // Throws PatternError.
    explicit PathGlobs(const std::vector<std::string>& globs);

    // Whether a file is searched, or a directory entered. The last glob that matches decides.
    bool includes(std::string_view path, bool is_directory);
    bool is_empty() const { return globs_.empty(); }

  private:
    struct Glob {
        std::unique_ptr<Matcher> matcher;
        bool excludes, is_for_directories;
    };
    std::vector<Glob> globs_;
    bool has_including_ = false;
};

}  // namespace gompfs::search
