// Compiles patterns and matches them; see matcher.h.
//
// PCRE2 tries to match at one position after another, and goes back where it fails, so its time may
// grow with a power of the length of a line. A call of PCRE2 cannot be stopped from outside.
// Therefore a call tries only some positions, and at each of them a small number of steps. Where
// these do not suffice, the pattern is matched again as it is compiled for this purpose: with
// callouts, which make matching several times slower, and which check the time and cancellation.
#include "search/matcher.h"

#include <time.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "common/cancellation.h"
#include "common/utf8.h"
#include "search/lines.h"
#include "search/pcre.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kMaxPatternSize = 1 << 20;  // of all patterns together
constexpr std::size_t kJitStackStart = 32 << 10, kJitStackMost = 4 << 20;
// A step of PCRE2 may pass over the rest of a line. So these limit what a call takes.
constexpr std::uint64_t kMaxWork = 4ULL << 30;  // positions, steps at each, and bytes of a line
constexpr std::size_t kLineUnit = 1 << 10;      // in which the lengths of lines are measured
constexpr std::size_t kLongLine = 64 << 10;
constexpr std::size_t kStartsAtOnce = 2048, kStartsInLongLine = 512, kStartsWithCallouts = 64;
constexpr std::uint32_t kFewestSteps = 50;
constexpr std::uint32_t kMaxSteps = 5'000'000;  // for the matches that begin at one position
constexpr std::uint32_t kMaxHeap = 64 << 10;    // in KiB, where PCRE2 has no compiler
// Of processor time with callouts: for a text, and for each byte of it.
constexpr double kSecondsOfText = 5, kSecondsOfByte = 1e-6;
// Shorter literals of a set are found too often to look for them first.
constexpr std::size_t kShortestOfSet = 3;

std::string message_of(int error) {
    PCRE2_UCHAR text[256];
    return pcre2_get_error_message(error, text, sizeof text) < 0
               ? "error " + std::to_string(error)
               : reinterpret_cast<const char*>(text);
}

Node parse_one(const std::string& pattern, const PatternOptions& options, SyntaxFlags flags) {
    if (!options.is_fixed) {
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
    flags.is_caseless = options.is_caseless;
    flags.dot_takes_newline = options.dot_takes_newline;
    flags.is_unicode = options.is_unicode;
    flags.groups = groups;
    Node node = parse_all(options, flags);
    if (options.is_smart_case && !options.is_caseless && is_smartly_caseless(node)) {
        flags.is_caseless = true;
        if (groups != nullptr) {
            groups->clear();
        }
        node = parse_all(options, flags);
    }
    return node;
}

}  // namespace

class CompiledPattern {
  public:
    CompiledPattern(PcreText text, bool is_utf8, bool has_groups) : text_(std::move(text)) {
        flags_ = PCRE2_USE_OFFSET_LIMIT | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
        flags_ |= has_groups ? 0 : PCRE2_NO_AUTO_CAPTURE;
        // A dot does not match bytes that are not UTF-8, so .* may begin after such a byte.
        flags_ |= is_utf8 ? PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NO_DOTSTAR_ANCHOR : 0;
        flags_ |= text_.is_caseless ? PCRE2_CASELESS : 0;
        int error = 0;
        code_ = compile(flags_, error);
        if (!code_) {
            throw PatternError("the pattern cannot be used: " + message_of(error));
        }
    }

    const pcre2_code* code() const { return code_.get(); }

    // With callouts before all items; null if the pattern is too large for that.
    const pcre2_code* code_with_callouts() const {
        std::call_once(has_callouts_, [&] {
            int error = 0;
            code_with_callouts_ = compile(flags_ | PCRE2_AUTO_CALLOUT, error);
        });
        return code_with_callouts_.get();
    }

  private:
    Code compile(std::uint32_t flags, int& error) const {
        const CompileContext context(require_memory(pcre2_compile_context_create(nullptr)));
        pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
        PCRE2_SIZE offset = 0;
        Code code(pcre2_compile(bytes_of(text_.pattern), text_.pattern.size(), flags, &error,
                                &offset, context.get()));
        if (code) {
            pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // without it, it is only slower
        }
        return code;
    }

    const PcreText text_;
    std::uint32_t flags_;
    Code code_;
    mutable std::once_flag has_callouts_;
    mutable Code code_with_callouts_;
};

Matcher::Matcher(const PatternOptions& options)
    : options_(options), is_multi_line_(options.is_multi_line) {
    const Node pattern = parse(options);
    // As in ripgrep: otherwise lines would be searched one way with -U, and another way without.
    is_multi_line_ =
        is_multi_line_ && (options.bounds == MatchBounds::lines || matches_newline(pattern));
    required_ = find_required_literals(pattern);
    // In a search for lines, PCRE2 keeps line feeds out of matches.
    is_literal_ = required_.is_whole && options.bounds == MatchBounds::any &&
                  (is_multi_line_ || !matches_newline(pattern));
    make_finder();
    if (!is_literal_) {
        patterns_ = compile(pattern, false);
    }
    if (options.replacement) {
        make_replacement();
    }
}

CompiledPatterns Matcher::compile(const Node& pattern, bool has_groups) const {
    const auto compile = [&](TextKind kind) {
        const PcreText text = write_pcre(pattern, kind, options_.bounds, is_multi_line_);
        return std::make_unique<CompiledPattern>(text, kind == TextKind::utf8, has_groups);
    };
    CompiledPatterns compiled;
    if (matches_bytes(pattern) || !options_.is_unicode) {
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
    replacement_.emplace(*options_.replacement, groups);
    if (replacement_->has_groups()) {
        with_groups_ = compile(pattern, true);
    }
}

Node Matcher::pattern() const { return parse(options_); }

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

namespace {

// Stops what takes too long, or was cancelled.
class Watch {
  public:
    void allow(double seconds) { seconds_left_ = seconds; }
    void start() { started_ = now(); }
    void stop() { seconds_left_ -= now() - started_; }
    bool is_over() const { return now() - started_ > seconds_left_; }

    static int callout(pcre2_callout_block*, void* watch) {
        return static_cast<Watch*>(watch)->is_stopped() ? PCRE2_ERROR_CALLOUT : 0;
    }

  private:
    bool is_stopped() { return (++num_callouts_ & 0xfff) == 0 && (is_cancelled() || is_over()); }

    // The processor time of this thread.
    static double now() {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }

    double seconds_left_ = 0, started_ = 0;
    unsigned num_callouts_ = 0;
};

// At least the length of the longest line.
std::size_t length_of_lines(std::string_view text) {
    std::size_t longest = 0, length = 0;
    for (std::size_t at = 0; at < text.size(); at += kLineUnit) {
        const bool has_end = text.substr(at, kLineUnit).find('\n') != std::string_view::npos;
        length += kLineUnit;
        longest = std::max(longest, length);
        length = has_end ? kLineUnit : length;
    }
    return longest;
}

}  // namespace

struct MatchSession::State {
    MatchData data{require_memory(pcre2_match_data_create(1, nullptr))};
    MatchData groups;
    MatchContext context{require_memory(pcre2_match_context_create(nullptr))};
    JitStack stack{require_memory(pcre2_jit_stack_create(kJitStackStart, kJitStackMost, nullptr))};
    Watch watch;
    std::uint32_t num_steps = kMaxSteps;  // at each position, without callouts

    State() {
        pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
        pcre2_set_heap_limit(context.get(), kMaxHeap);
        pcre2_set_callout(context.get(), &Watch::callout, &watch);
    }

    int match(const pcre2_code* code, std::string_view text, std::size_t from) {
        return pcre2_match(code, bytes_of(text), text.size(), from, 0, data.get(), context.get());
    }
};

MatchSession::MatchSession(const Matcher& matcher)
    : matcher_(matcher), state_(std::make_unique<State>()) {
    if (matcher.with_groups_.other) {
        state_->groups.reset(require_memory(
            pcre2_match_data_create_from_pattern(matcher.with_groups_.other->code(), nullptr)));
    }
}

MatchSession::~MatchSession() = default;

bool MatchSession::may_match(std::string_view text) const {
    return !matcher_.has_finder() || matcher_.finder_needs_ascii_ ||
           matcher_.find_literal(text, 0).has_value();
}

void MatchSession::prepare(std::string_view text) {
    is_ascii_ = gompfs::is_ascii(text);
    const std::size_t length =
        std::max(matcher_.is_multi_line_ ? text.size() : length_of_lines(text), kLineUnit);
    starts_at_once_ = length > kLongLine ? kStartsInLongLine : kStartsAtOnce;
    state_->num_steps = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(kMaxWork / starts_at_once_ / length, kFewestSteps, kMaxSteps));
    pcre2_set_match_limit(state_->context.get(), state_->num_steps);
    state_->watch.allow(kSecondsOfText + kSecondsOfByte * static_cast<double>(text.size()));
}

int MatchSession::match(const CompiledPattern& pattern, std::string_view text, std::size_t from) {
    const auto set_last = [&](std::size_t next) {
        pcre2_set_offset_limit(state_->context.get(), next > text.size() ? PCRE2_UNSET : next - 1);
    };
    const auto end_of = [&](std::size_t num_starts) {
        std::size_t next = std::min(from + num_starts, text.size());
        while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80) {
            ++next;  // not inside a character
        }
        return next == text.size() ? next + 1 : next;
    };
    int result = PCRE2_ERROR_NOMATCH;
    while (result == PCRE2_ERROR_NOMATCH && from <= text.size()) {
        std::size_t next = end_of(starts_at_once_);
        set_last(next);
        result = state_->match(pattern.code(), text, from);
        if (result == PCRE2_ERROR_MATCHLIMIT) {
            next = end_of(kStartsWithCallouts);
            set_last(next);
            result = match_carefully(pattern, text, from);
        }
        from = next;
        throw_if_cancelled();
    }
    return result;
}

int MatchSession::match_carefully(const CompiledPattern& pattern, std::string_view text,
                                  std::size_t from) {
    const pcre2_code* const code = pattern.code_with_callouts();
    if (code == nullptr) {
        return PCRE2_ERROR_MATCHLIMIT;
    }
    pcre2_set_match_limit(state_->context.get(), kMaxSteps);
    state_->watch.start();
    const int result = state_->match(code, text, from);
    state_->watch.stop();
    pcre2_set_match_limit(state_->context.get(), state_->num_steps);
    if (result == PCRE2_ERROR_CALLOUT) {
        throw_if_cancelled();
        throw SearchError("the pattern takes too long on a line");
    }
    return result;
}

std::optional<Match> MatchSession::find(std::string_view text, std::size_t from) {
    if (matcher_.is_literal_) {
        return matcher_.find_literal(text, from);
    }
    const CompiledPattern& pattern = matcher_.patterns_.of(is_ascii_);
    const int result = match(pattern, text, from);
    if (result == PCRE2_ERROR_NOMATCH) {
        return std::nullopt;
    }
    if (result < 0) {
        throw SearchError("the pattern takes too many steps: " + message_of(result));
    }
    const PCRE2_SIZE* const match = pcre2_get_ovector_pointer(state_->data.get());
    return Match{match[0], match[1]};
}

// The match again, with its groups.
std::span<const std::size_t> MatchSession::groups_of(std::string_view text, const Match& match) {
    const pcre2_code* const code = matcher_.with_groups_.of(is_ascii_).code();
    pcre2_set_offset_limit(state_->context.get(), PCRE2_UNSET);
    pcre2_set_match_limit(state_->context.get(), kMaxSteps);
    const int result = pcre2_match(code, bytes_of(text), text.size(), match.begin, PCRE2_ANCHORED,
                                   state_->groups.get(), state_->context.get());
    pcre2_set_match_limit(state_->context.get(), state_->num_steps);
    if (result < 0) {
        throw SearchError("the groups of a match take too many steps: " + message_of(result));
    }
    return {pcre2_get_ovector_pointer(state_->groups.get()), 2 * static_cast<std::size_t>(result)};
}

void MatchSession::replace(std::string_view text, std::size_t size, std::span<const Match> matches,
                           ReplacedText& replaced) {
    const std::string_view searched = matched_part(text, size, matcher_.is_multi_line_);
    replaced.text.clear();
    replaced.matches.clear();
    std::size_t at = 0;
    for (const Match& match : matches) {
        replaced.text += searched.substr(at, match.begin - at);
        at = match.end;
        const std::size_t begin = replaced.text.size();
        const std::size_t whole[] = {match.begin, match.end};
        const auto groups = state_->groups ? groups_of(searched, match) : std::span(whole);
        matcher_.replacement_->append(searched, groups, replaced.text);
        replaced.matches.push_back({begin, replaced.text.size()});
    }
    size = std::min(size, searched.size());
    replaced.text += at < size ? searched.substr(at, size - at) : "";
}

std::optional<Match> MatchSession::find_in_lines(std::string_view text, std::size_t from) {
    const bool uses_finder = matcher_.has_finder() && !matcher_.is_literal_ &&
                             (is_ascii_ || !matcher_.finder_needs_ascii_);
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
        if (const auto match = find(text.substr(line.begin, line.size()))) {
            return Match{line.begin + match->begin, line.begin + match->end};
        }
        from = line.next;
    }
}

}  // namespace gompfs::search
