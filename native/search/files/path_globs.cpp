// Translates globs to patterns; see path_globs.h.
#include "search/files/path_globs.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace gompfs::search {
namespace {

constexpr std::string_view kNoSlash = "[^/]";

// Writes a glob as a pattern for bytes.
class GlobWriter {
  public:
    GlobWriter(std::string_view glob, bool allows_open_class)
        : glob_(glob), allows_open_class_(allows_open_class) {}

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
        } else if (glob_[at_] == '[' && (!allows_open_class_ || has_class())) {
            ++at_;
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

    // Whether a class ends somewhere after the [ here.
    bool has_class() const {
        const std::size_t next = at_ + 1;
        const bool is_negated = next < glob_.size() && (glob_[next] == '!' || glob_[next] == '^');
        return glob_.find(']', next + (is_negated ? 2 : 1)) != glob_.npos;
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
    const bool allows_open_class_;
    std::size_t at_ = 0;
    int depth_ = 0;  // of alternatives
    std::string text_;
};

}  // namespace

GlobList::GlobList(const std::vector<std::string>& globs) {
    for (const std::string& glob : globs) {
        add(glob, false);
    }
}

// Most globs need no pattern: names, endings of names, and paths.
void GlobList::add(std::string_view glob, bool is_rule) {
    Glob parsed{Glob::Kind::pattern, "", nullptr, glob.starts_with('!'), false};
    glob.remove_prefix(parsed.excludes ? 1 : 0);
    parsed.is_for_directories = glob.size() > 1 && glob.ends_with('/');
    glob.remove_suffix(parsed.is_for_directories ? 1 : 0);
    glob.remove_suffix(parsed.is_for_directories && glob.ends_with('\\') ? 1 : 0);
    const bool is_anchored = glob.find('/') != glob.npos;
    glob.remove_prefix(glob.starts_with('/') ? 1 : 0);
    const auto is_literal = [](std::string_view text) {
        return text.find_first_of("*?[{\\") == text.npos;
    };
    if (glob.empty() && !is_anchored) {
        parsed.kind = Glob::Kind::end_of_name;  // a ! alone is for all names
    } else if (is_literal(glob)) {
        parsed.kind = is_anchored ? Glob::Kind::path : Glob::Kind::name;
        parsed.literal = glob;
    } else if (!is_anchored && glob.starts_with('*') && is_literal(glob.substr(1))) {
        parsed.kind = Glob::Kind::end_of_name;
        parsed.literal = glob.substr(1);
    } else {
        std::string pattern = "(?-mu)(?s:^" + std::string(is_anchored ? "" : "(?:.*/)?") +
                              GlobWriter(glob, is_rule).write() + "$)";
        PatternOptions options;
        options.patterns = {std::move(pattern)};
        options.multiline = true;
        parsed.matcher = std::make_unique<Matcher>(options);
        ++num_patterns_;
    }
    has_including_ = has_including_ || !parsed.excludes;
    globs_.push_back(std::move(parsed));
}

bool GlobList::Glob::matches(std::string_view path, std::string_view name) const {
    switch (kind) {
        case Kind::name:
            return name == literal;
        case Kind::end_of_name:
            return name.ends_with(literal);
        case Kind::path:
            return path == literal;
        case Kind::pattern:
            break;
    }
    MatchSession session(*matcher);
    session.prepare(path);
    return session.find(path).has_value();
}

std::optional<bool> GlobList::last_match(std::string_view path, bool is_directory) const {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    for (auto glob = globs_.rbegin(); glob != globs_.rend(); ++glob) {
        if ((is_directory || !glob->is_for_directories) && glob->matches(path, name)) {
            return !glob->excludes;
        }
    }
    return std::nullopt;
}

std::optional<bool> GlobList::decide(std::string_view path, bool is_directory) const {
    while (path.starts_with("./") || path.starts_with('/')) {
        path.remove_prefix(path.starts_with('/') ? 1 : 2);  // as the PATH was given
    }
    if (const std::optional<bool> decision = last_match(path, is_directory)) {
        return decision;
    }
    return is_directory || !has_including_ ? std::nullopt : std::optional(false);
}

}  // namespace gompfs::search
