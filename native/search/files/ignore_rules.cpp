// Reads and applies ignore rules; see ignore_rules.h.
#include "search/files/ignore_rules.h"

#include <algorithm>

#include "common/cancellation.h"
#include "common/utf8.h"
#include "search/match/match.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kMaxFileSize = 1 << 20, kMaxBytes = 64 << 20;
constexpr std::size_t kMaxRules = 10'000;         // of a file
constexpr std::size_t kMaxPatterns = 2'000;       // at the same time
constexpr std::size_t kMaxParsed = 100'000;       // patterns of all files
constexpr std::uint64_t kMaxTries = 500'000'000;  // of patterns
constexpr std::size_t kMaxSlow = 3;  // files or directories for which a rule was too slow
constexpr std::size_t kMaxWarnings = 100, kShownOfLine = 200;
constexpr std::string_view kNames[] = {".rgignore", ".ignore", ".gitignore"};
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

IgnoreRules::IgnoreRules(bool reads_archive,
                         const std::vector<std::pair<std::string, std::string>>& files, Read read)
    : reads_archive_(reads_archive), read_(std::move(read)) {
    for (const auto& [name, content] : files) {
        named_.push_back(parse(name, content));
        num_patterns_ += named_.back().num_patterns();
    }
}

void IgnoreRules::warn(std::string text) {
    if (warnings_.size() < kMaxWarnings) {
        warnings_.push_back(std::move(text));
    } else if (warnings_.size() == kMaxWarnings) {
        warnings_.push_back("there are more warnings about ignore files");
    }
}

void IgnoreRules::enter(std::string_view path, std::span<const EntryRow> entries) {
    levels_.emplace_back();
    if (!reads_archive_) {
        return;
    }
    Level level{path.size(), false, {}};
    bool has_rules = false;
    for (const EntryRow& entry : entries) {
        level.is_repository |= entry.name == ".git" || entry.name == ".jj";
        const auto* const name = std::find(std::begin(kNames), std::end(kNames), entry.name);
        if (name == std::end(kNames)) {
            continue;
        }
        const std::string file = std::string(path) + std::string(entry.name);
        std::string problem;
        if (const auto text = read_(entry.ino, kMaxFileSize, problem)) {
            GlobList rules = parse(file, *text);
            has_rules |= !rules.is_empty();
            num_patterns_ += rules.num_patterns();
            level.rules[name - std::begin(kNames)] = std::move(rules);
        } else if (!problem.empty()) {
            warn(file + ": " + problem);
        }
    }
    if (has_rules || level.is_repository) {
        num_repositories_ += level.is_repository ? 1 : 0;
        levels_.back() = std::move(level);
    }
}

void IgnoreRules::leave() {
    if (const std::optional<Level>& level = levels_.back()) {
        num_repositories_ -= level->is_repository ? 1 : 0;
        for (const GlobList& rules : level->rules) {
            num_patterns_ -= rules.num_patterns();
        }
    }
    levels_.pop_back();
}

GlobList IgnoreRules::parse(const std::string& name, std::string_view text) {
    GlobList rules;
    num_bytes_ += text.size();
    if (num_bytes_ > kMaxBytes) {
        warn(name + ": not used: the ignore files have more than 64 MiB together");
        return rules;
    }
    text.remove_prefix(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        line.remove_suffix(end != text.npos && line.ends_with('\r') ? 1 : 0);
        const std::string place = name + ": line " + std::to_string(number);
        if (!is_valid_utf8(line)) {
            warn(place + ": not valid UTF-8; the rest of the file is not used");
            break;
        }
        const bool has_many = rules.size() >= kMaxRules || num_parsed_ >= kMaxParsed ||
                              num_patterns_ + rules.num_patterns() >= kMaxPatterns;
        if (has_many) {
            warn(place + ": too many rules; the rest of the file is not used");
            break;
        }
        add_line(place, line, rules);
    }
    return rules;
}

void IgnoreRules::add_line(const std::string& place, std::string_view line, GlobList& rules) {
    throw_if_cancelled();
    if (line.starts_with('#')) {
        return;
    }
    if (!line.ends_with("\\ ")) {
        line = line.substr(0, line.find_last_not_of(" \t\n\v\f\r") + 1);
    }
    if (line.empty()) {
        return;
    }
    const std::size_t num_patterns = rules.num_patterns();
    try {
        rules.add_rule(line);
    } catch (const PatternError& error) {
        warn(place + ": " + std::string(error.what()).substr(0, kShownOfLine));
    }
    num_parsed_ += rules.num_patterns() - num_patterns;
}

// Of a list with a rule that takes too long, nothing matches this path.
std::optional<bool> IgnoreRules::last_match(const GlobList& rules, std::string_view path,
                                            bool is_directory) {
    num_tries_ += rules.num_patterns();
    if (num_tries_ > kMaxTries) {
        throw SearchError("the ignore files have too many rules with wildcards for so many files");
    }
    try {
        return rules.last_match(path, is_directory);
    } catch (const SearchError&) {
        if (++num_slow_ == kMaxSlow) {
            throw SearchError("a rule of an ignore file takes too long");
        }
        warn(std::string(path) + ": a rule of an ignore file takes too long for this path");
        return std::nullopt;
    }
}

bool IgnoreRules::ignores(std::string_view path, bool is_directory) {
    throw_if_cancelled();
    std::optional<bool> found[num_kinds];
    bool is_in_repository = num_repositories_ != 0;
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
        if (!*level) {
            continue;
        }
        const std::string_view below = path.substr((*level)->path_size);
        for (std::size_t kind = 0; kind < num_kinds; ++kind) {
            if (!found[kind] && (kind != gitignore || is_in_repository)) {
                found[kind] = last_match((*level)->rules[kind], below, is_directory);
            }
        }
        is_in_repository = is_in_repository && !(*level)->is_repository;
    }
    for (const std::optional<bool>& decision : found) {
        if (decision) {
            return *decision;
        }
    }
    for (auto rules = named_.rbegin(); rules != named_.rend(); ++rules) {
        if (const auto decision = last_match(*rules, path, is_directory)) {
            return *decision;
        }
    }
    return false;
}

}  // namespace gompfs::search
