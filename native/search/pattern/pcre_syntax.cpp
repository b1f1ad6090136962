// Joins patterns in the syntax of PCRE2; see pcre_syntax.h.
#include "search/pattern/pcre_syntax.h"

#include <algorithm>
#include <string_view>

#include "common/utf8.h"
#include "search/pattern/pattern_syntax.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kMaxPatternSize = 1 << 20;

// As in ripgrep: an escape is not looked at.
bool has_uppercase(std::string_view pattern) {
    while (!pattern.empty()) {
        if (pattern.front() == '\\') {
            pattern.remove_prefix(1);
            pattern.remove_prefix(
                std::min(pattern.size(), std::max<std::size_t>(decode_utf8(pattern).size, 1)));
            continue;
        }
        const DecodedCharacter character = decode_utf8(pattern);
        if (character.size != 0 && is_uppercase(character.code)) {
            return true;
        }
        pattern.remove_prefix(std::max<std::size_t>(character.size, 1));
    }
    return false;
}

bool has_set_of_sets(const ClassSet& set) {
    return set.op != ClassSet::Operator::none ||
           std::any_of(set.items.begin(), set.items.end(),
                       [](const ClassItem& item) { return item.set != nullptr; });
}

}  // namespace

PcreText join_pcre(const PatternOptions& options) {
    PcreText joined;
    joined.is_pcre = true;
    bool is_smartly_caseless = options.smart_case;
    for (const std::string& pattern : options.patterns) {
        if (!is_valid_utf8(pattern)) {
            throw PatternError("the pattern is not valid UTF-8");
        }
        joined.pattern += (joined.pattern.empty() ? "(?:" : "|(?:") + pattern + ')';
        is_smartly_caseless = is_smartly_caseless && !has_uppercase(pattern);
    }
    if (joined.pattern.size() > kMaxPatternSize) {
        throw PatternError("the patterns have more than 1 MiB");
    }
    joined.is_caseless = options.ignore_case || is_smartly_caseless;
    if (options.patterns.empty()) {
        joined.pattern = "(?!)";
    }
    if (options.bounds() == MatchBounds::words) {
        joined.pattern = "(?<!\\w)(?:" + joined.pattern + ")(?!\\w)";
    } else if (options.bounds() == MatchBounds::lines) {
        joined.pattern = "(?m:^)(?:" + joined.pattern + ")(?m:$)";
    }
    return joined;
}

bool means_the_same(const std::string& pattern) {
    if (pattern.find("\\v") != pattern.npos) {
        return false;  // here a class, and a character there
    }
    // Flags x and xx treat classes in another way.
    for (std::size_t at = 0; (at = pattern.find("(?", at)) != pattern.npos; ++at) {
        const std::size_t end = pattern.find_first_of(":)", at);
        if (std::string_view(pattern).substr(at, end - at).find('x') != std::string_view::npos) {
            return false;
        }
    }
    bool is_same = true;
    for_each_node(parse_pattern(pattern), [&](const Node& node) {
        is_same = is_same && !(node.kind == Node::Kind::char_class && has_set_of_sets(node.set));
    });
    return is_same;
}

}  // namespace gompfs::search
