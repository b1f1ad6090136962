// The rules of .gitignore, .ignore and .rgignore files in an archive, and of files that the user
// names. They have the meaning that ripgrep gives them.
//
// Of the rules of one kind, those of deeper directories count more, and in a file later ones. A
// rule of .rgignore counts more than any of .ignore, and that more than any of .gitignore; those of
// files that the user names count least. A .gitignore counts for what is in the same git
// repository.
//
// Ignore files are untrusted input. What exceeds a limit is not used, with a warning: the size of a
// file, the number of its rules, how many rules have wildcards, and what all files have together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "index/file_rows.h"
#include "search/files/path_globs.h"

namespace gompfs::search {

class IgnoreRules {
  public:
    // Returns the text of a regular file, or nothing for what is none, or is larger than the limit.
    // Says in `problem` why a regular file has no text.
    using Read = std::function<std::optional<std::string>(std::uint64_t ino, std::size_t max_size,
                                                          std::string& problem)>;

    // Uses the files in the archive if reads_archive. `files` are names and contents of files that
    // the user names, whose paths begin at the root.
    IgnoreRules(bool reads_archive, const std::vector<std::pair<std::string, std::string>>& files,
                Read read);

    // Whether there may be rules. If not, no other method need be called.
    bool is_used() const { return reads_archive_ || !named_.empty(); }

    // Enters a directory: its path in the archive, with a slash at the end unless it is the root,
    // and its entries. The directories above it must have been entered.
    void enter(std::string_view path, std::span<const EntryRow> entries);
    void leave();

    // Whether an entry of the directory that was entered last is ignored. Throws SearchError if
    // that takes too long.
    bool ignores(std::string_view path, bool is_directory);

    // What is wrong with the files, in lines.
    std::vector<std::string> take_warnings() { return std::move(warnings_); }

  private:
    enum Kind : std::size_t { rgignore, ignore, gitignore, num_kinds };

    struct Level {
        std::size_t path_size;
        bool is_repository;
        GlobList rules[num_kinds];
    };

    void warn(std::string text);
    GlobList parse(const std::string& name, std::string_view text);
    void add_line(const std::string& place, std::string_view line, GlobList& rules);
    std::optional<bool> last_match(const GlobList& rules, std::string_view path, bool is_directory);

    const bool reads_archive_;
    const Read read_;
    std::vector<GlobList> named_;
    std::vector<std::optional<Level>> levels_;  // none: a directory without rules
    std::size_t num_repositories_ = 0;          // of the levels
    std::size_t num_patterns_ = 0;              // of the levels and named files
    std::size_t num_bytes_ = 0, num_parsed_ = 0;
    std::uint64_t num_tries_ = 0;
    std::size_t num_slow_ = 0;
    std::vector<std::string> warnings_;
};

}  // namespace gompfs::search
