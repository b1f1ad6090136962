// Compiles patterns and matches them; see matcher.h.
#include "search/match/matcher.h"

#include <algorithm>
#include <utility>

#include "common/cancellation.h"
#include "common/utf8.h"
#include "search/match/bounded_match.h"
#include "search/match/compiled_pattern.h"
#include "search/match/lines.h"
#include "search/pattern/pcre_syntax.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kMaxPatternSize = 1 << 20;  // of all patterns together
// Shorter literals of a set are found too often to look for them first.
constexpr std::size_t kShortestOfSet = 3;

Node parse_one(const std::string& pattern, const PatternOptions& options, SyntaxFlags flags) {
    if (!options.fixed_strings) {
        return parse_pattern(pattern, flags);
    }
    std::vector<Node> characters;
    for (std::string_view rest = pattern; !rest.empty();) {
        const DecodedCharacter character = decode_utf8(rest);
        if (character.size == 0) {
            throw PatternError("the pattern is not valid UTF-8");
        }
        Node node;
        node.kind = Node::Kind::literal;
        node.code = character.code;
        node.is_caseless = flags.is_caseless;
        characters.push_back(std::move(node));
        rest.remove_prefix(character.size);
    }
    return concatenate(std::move(characters));
}

Node parse_all(const PatternOptions& options, const SyntaxFlags& flags) {
    std::vector<Node> parsed;
    for (std::size_t index = 0; index < options.patterns.size(); ++index) {
        try {
            parsed.push_back(parse_one(options.patterns[index], options, flags));
        } catch (const PatternError& error) {
            const std::string number =
                options.patterns.size() == 1 ? "" : " " + std::to_string(index + 1);
            throw PatternError("pattern" + number + ": " + error.what());
        }
    }
    return alternate(std::move(parsed));
}

// Parses all patterns. The names of groups are appended to `groups`, if it is given.
Node parse(const PatternOptions& options, std::vector<std::string>* groups = nullptr) {
    std::size_t size = 0;
    for (const std::string& pattern : options.patterns) {
        size += pattern.size();
    }
    if (size > kMaxPatternSize) {
        throw PatternError("the patterns have more than 1 MiB");
    }
    SyntaxFlags flags;
    flags.is_caseless = options.ignore_case;
    flags.groups = groups;
    Node node = parse_all(options, flags);
    if (options.smart_case && !options.ignore_case && is_smartly_caseless(node)) {
        flags.is_caseless = true;
        if (groups != nullptr) {
            groups->clear();
        }
        node = parse_all(options, flags);
    }
    return node;
}

}  // namespace

Matcher::Matcher(const PatternOptions& options)
    : options_(options), is_multi_line_(options.multiline) {
    if (options.is_pcre()) {
        use_pcre();
        return;
    }
    const Node pattern = parse(options);
    // As in ripgrep: otherwise lines would be searched one way with -U, and another way without.
    is_multi_line_ = is_multi_line_ && (options.bounds() == MatchBounds::lines ||
                                        matches_newline(pattern, options.crlf));
    required_ = find_required_literals(pattern);
    // In a search for lines, PCRE2 keeps line feeds out of matches.
    is_literal_ = required_.is_whole && options.bounds() == MatchBounds::any &&
                  (is_multi_line_ || !matches_newline(pattern, options.crlf));
    make_finder();
    if (!is_literal_) {
        patterns_ = compile(pattern, false);
    }
    if (options.replace) {
        make_replacement();
    }
}

CompiledPatterns Matcher::compile(const Node& pattern, bool has_groups) const {
    const auto compile = [&](TextKind kind) {
        const PcreText text =
            write_pcre(pattern, kind, options_.bounds(), is_multi_line_, options_.crlf);
        return std::make_unique<CompiledPattern>(text, kind == TextKind::utf8, has_groups,
                                                 options_.crlf);
    };
    CompiledPatterns compiled;
    if (matches_bytes(pattern)) {
        compiled.other = compile(TextKind::bytes);
    } else {
        compiled.ascii = compile(TextKind::ascii);
        compiled.other = compile(TextKind::utf8);
    }
    return compiled;
}

void Matcher::make_replacement() {
    std::vector<std::string> groups;
    const Node pattern = parse(options_, &groups);
    replacement_.emplace(*options_.replace, groups);
    if (replacement_->has_groups()) {
        with_groups_ = compile(pattern, true);
    }
}

// Patterns in the syntax of PCRE2 are compiled as they are. What their matches contain is only
// known if they mean the same in ripgrep's other syntax.
void Matcher::use_pcre() {
    const PcreText text = join_pcre(options_);
    searches_by_line_ = !is_multi_line_;
    is_literal_ = false;
    const auto compile = [&](bool is_utf8) {
        return std::make_unique<CompiledPattern>(text, is_utf8, true, options_.crlf);
    };
    patterns_.other = compile(true);
    if (gompfs::is_ascii(text.pattern)) {
        try {
            patterns_.ascii = compile(false);
        } catch (const PatternError&) {
            // It has characters that are not ASCII, as numbers.
        }
    }
    try {
        if (std::all_of(options_.patterns.begin(), options_.patterns.end(), means_the_same)) {
            PatternOptions options = options_;
            options.ignore_case = text.is_caseless;
            options.smart_case = false;
            required_ = find_required_literals(parse(options));
            required_.is_exact = required_.is_whole = false;
            make_finder();
        }
    } catch (const PatternError&) {
        // All files are searched.
    }
    if (options_.replace) {
        replacement_.emplace(*options_.replace, patterns_.other->group_names());
        if (replacement_->has_groups()) {
            with_groups_.other = compile(true);
        }
    }
}

std::optional<Node> Matcher::pattern() const {
    return options_.is_pcre() ? std::nullopt : std::optional(parse(options_));
}

std::optional<Node> Matcher::line_pattern() const {
    std::optional<Node> node = pattern();
    if (!node || is_multi_line_ || options_.crlf || options_.bounds() == MatchBounds::any) {
        return is_multi_line_ || options_.crlf ? std::nullopt : std::move(node);
    }
    const bool are_lines = options_.bounds() == MatchBounds::lines;
    std::vector<Node> bounded(3);
    bounded[0].kind = are_lines ? Node::Kind::line_start : Node::Kind::word_boundary;
    bounded[1] = std::move(*node);
    bounded[2].kind = are_lines ? Node::Kind::line_end : Node::Kind::word_boundary;
    return concatenate(std::move(bounded));
}

// Chooses the set of literals that is probably found least often.
void Matcher::make_finder() {
    const LiteralSet* best = nullptr;
    for (const LiteralSet& set : required_.sets) {
        const bool is_single = set.literals.size() == 1;
        if (!is_single && !is_literal_ && set.shortest() < kShortestOfSet) {
            continue;
        }
        if (best == nullptr || std::pair(is_single, set.shortest()) >
                                   std::pair(best->literals.size() == 1, best->shortest())) {
            best = &set;
        }
    }
    if (best == nullptr) {
        return;
    }
    finder_needs_ascii_ = best->has_unicode_case();
    if (best->literals.size() == 1) {
        finder_.emplace(best->literals.front(), best->is_caseless);
    } else {
        set_finder_.emplace(*best);
    }
}

std::optional<Match> Matcher::find_literal(std::string_view text, std::size_t from) const {
    if (set_finder_) {
        return set_finder_->find(text, from);
    }
    const std::size_t begin = finder_->find(text, from);
    return begin == LiteralFinder::kNone ? std::nullopt
                                         : std::optional(Match{begin, begin + finder_->size()});
}

Matcher::~Matcher() = default;

MatchSession::MatchSession(const Matcher& matcher)
    : matcher_(matcher), bounded_match_(std::make_unique<BoundedMatch>()) {}

MatchSession::~MatchSession() = default;

bool MatchSession::may_match(std::string_view text) const {
    return !matcher_.has_finder() || matcher_.finder_needs_ascii_ ||
           matcher_.find_literal(text, 0).has_value();
}

void MatchSession::prepare(std::string_view text) {
    is_ascii_ = gompfs::is_ascii(text);
    bounded_match_->set_limits(text, matcher_.is_multi_line_);
}

std::optional<Match> MatchSession::find(std::string_view text, std::size_t from) {
    return matcher_.is_literal_
               ? matcher_.find_literal(text, from)
               : bounded_match_->find(matcher_.patterns_.of(is_ascii_), text, from);
}

void MatchSession::replace(std::string_view text, std::size_t size, std::span<const Match> matches,
                           std::size_t wanted_size, ReplacedText& replaced) {
    const std::string_view searched =
        matched_part(text, size, matcher_.is_multi_line_, matcher_.options_.crlf);
    const std::string_view line_end =
        matcher_.is_multi_line_ ? "" : text.substr(0, size).substr(searched.size());
    const CompiledPatterns& with_groups = matcher_.with_groups_;
    replaced.begin(searched.size(), wanted_size);
    std::size_t at = 0;
    for (const Match& match : matches) {
        replaced.append(searched.substr(at, match.begin - at));
        at = match.end;
        const std::size_t begin = replaced.text.size();
        const std::size_t whole[] = {match.begin, match.end};
        const auto groups = with_groups.other ? bounded_match_->find_groups(
                                                    with_groups.of(is_ascii_), searched, match)
                                              : std::span(whole);
        matcher_.replacement_->append(searched, groups, replaced);
        replaced.matches.push_back({begin, replaced.text.size()});
        if (replaced.is_complete()) {
            return;
        }
    }
    size = std::min(size, searched.size());
    replaced.append(at < size ? searched.substr(at, size - at) : "");
    replaced.append(line_end);
}

std::optional<Match> MatchSession::find_in_lines(std::string_view text, std::size_t from) {
    const bool uses_finder = matcher_.has_finder() && !matcher_.is_literal_ &&
                             (is_ascii_ || !matcher_.finder_needs_ascii_);
    if (!uses_finder && matcher_.searches_by_line_) {
        for (CancellationPoint check; from < text.size();) {
            check();
            const Line line = line_from(text, from);
            if (const auto match =
                    find(matched_part(text.substr(line.begin), line.next - line.begin, false,
                                      matcher_.options_.crlf))) {
                return Match{line.begin + match->begin, line.begin + match->end};
            }
            from = line.next;
        }
        return std::nullopt;
    }
    if (!uses_finder) {
        std::optional<Match> match = find(text, from);
        // An empty match after the last line feed is in no line.
        const bool is_in_line = match && match->begin != text.size();
        return is_in_line || (match && text.back() != '\n') ? match : std::nullopt;
    }
    for (;;) {
        const std::optional<Match> candidate = matcher_.find_literal(text, from);
        if (!candidate) {
            return std::nullopt;
        }
        const Line line = line_at(text, candidate->begin);
        const std::string_view searched = matched_part(
            text.substr(line.begin), line.next - line.begin, false, matcher_.options_.crlf);
        if (const auto match = find(searched)) {
            return Match{line.begin + match->begin, line.begin + match->end};
        }
        from = line.next;
    }
}

}  // namespace gompfs::search
