// Translates globs to patterns; see path_globs.h.
#include "search/path_globs.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace gompfs::search {
namespace {

constexpr std::string_view kNoSlash = "[^/]";

// Writes a glob as a pattern for bytes.
class GlobWriter {
  public:
    explicit GlobWriter(std::string_view glob) : glob_(glob) {}

    std::string write() {
        while (at_ < glob_.size()) {
            write_next();
        }
        if (depth_ != 0) {
            fail("unclosed alternate group; missing '}'");
        }
        return std::move(text_);
    }

  private:
    [[noreturn]] void fail(const char* reason) const {
        throw PatternError("glob '" + std::string(glob_) + "': " + reason);
    }

    void write_byte(char byte) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(byte));
        text_ += escaped;
    }

    bool take(std::string_view what) {
        const bool is_next = glob_.substr(at_).starts_with(what);
        at_ += is_next ? what.size() : 0;
        return is_next;
    }

    void write_next() {
        const bool is_after_slash = at_ == 0 || glob_[at_ - 1] == '/';
        if (is_after_slash && take("**/")) {
            text_ += "(?:.*/)?";
        } else if (is_after_slash && glob_.substr(at_) == "**") {
            at_ += 2;
            text_ += ".*";
        } else if (take("*")) {
            text_ += std::string(kNoSlash) + '*';
        } else if (take("?")) {
            text_ += kNoSlash;
        } else if (take("[")) {
            write_class();
        } else if (take("{")) {
            ++depth_;
            text_ += "(?:";
        } else if (depth_ != 0 && take("}")) {
            --depth_;
            text_ += ')';
        } else if (depth_ != 0 && take(",")) {
            text_ += '|';
        } else {
            if (take("\\") && at_ == glob_.size()) {
                fail("dangling '\\'");
            }
            write_byte(glob_[at_++]);
        }
    }

    void write_class() {
        text_ += take("!") || take("^") ? "[^/" : "[";
        const std::size_t first = at_;
        for (; at_ < glob_.size() && (glob_[at_] != ']' || at_ == first); ++at_) {
            const bool is_range = glob_[at_] == '-' && at_ != first && at_ + 1 < glob_.size() &&
                                  glob_[at_ + 1] != ']';
            if (is_range) {
                text_ += '-';
            } else {
                write_byte(glob_[at_]);
            }
        }
        if (!take("]")) {
            fail("unclosed character class; missing ']'");
        }
        text_ += ']';
    }

    const std::string_view glob_;
    std::size_t at_ = 0;
    int depth_ = 0;  // of alternatives
    std::string text_;
};

}  // namespace

GlobList::GlobList(const std::vector<std::string>& globs,
                   const std::vector<std::string>& caseless) {
    for (const std::string& glob : globs) {
        add(glob, false);
    }
    for (const std::string& glob : caseless) {
        add(glob, true);
    }
}

void GlobList::add(std::string_view glob, bool is_caseless) {
    Glob parsed{nullptr, glob.starts_with('!'), false};
    glob.remove_prefix(parsed.excludes ? 1 : 0);
    parsed.is_for_directories = glob.size() > 1 && glob.ends_with('/');
    glob.remove_suffix(parsed.is_for_directories ? 1 : 0);
    const bool is_anchored = glob.find('/') != glob.npos;
    glob.remove_prefix(glob.starts_with('/') ? 1 : 0);
    std::string pattern =
        "(?s:^" + std::string(is_anchored ? "" : "(?:.*/)?") + GlobWriter(glob).write() + "$)";
    PatternOptions options;
    options.patterns = {(is_caseless ? "(?-mu)(?i)" : "(?-mu)") + std::move(pattern)};
    options.is_multi_line = true;
    parsed.matcher = std::make_unique<Matcher>(options);
    has_including_ = has_including_ || !parsed.excludes;
    globs_.push_back(std::move(parsed));
}

std::optional<bool> GlobList::decide(std::string_view path, bool is_directory) const {
    while (path.starts_with("./") || path.starts_with('/')) {
        path.remove_prefix(path.starts_with('/') ? 1 : 2);  // as the PATH was given
    }
    for (auto glob = globs_.rbegin(); glob != globs_.rend(); ++glob) {
        if (glob->is_for_directories && !is_directory) {
            continue;
        }
        MatchSession session(*glob->matcher);
        session.prepare(path);
        if (session.find(path)) {
            return !glob->excludes;
        }
    }
    return is_directory || !has_including_ ? std::nullopt : std::optional(false);
}

}  // namespace gompfs::search
