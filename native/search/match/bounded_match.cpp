// Limits positions, steps and time of matching; see bounded_match.h.
#include "search/match/bounded_match.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <string>

#include "common/cancellation.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kJitStackStart = 32 << 10, kJitStackMost = 4 << 20;
// For what needs more: a group that is repeated along a line of a few MB.
constexpr std::size_t kLargeJitStack = 512 << 20;
// A step of PCRE2 may pass over the rest of a line. So these limit what a call takes.
constexpr std::uint64_t kMaxWork = 4ULL << 30;  // positions, steps at each, and bytes of a line
constexpr std::size_t kLineUnit = 1 << 10;      // in which the lengths of lines are measured
constexpr std::size_t kLongLine = 64 << 10;
constexpr std::size_t kNumStarts = 2048, kNumStartsInLongLine = 512, kNumStartsWithCallouts = 64;
constexpr std::uint32_t kFewestSteps = 50;
constexpr std::uint32_t kMaxSteps = 5'000'000;  // for the matches that begin at one position
constexpr std::uint32_t kMaxHeap = 64 << 10;    // in KiB, where PCRE2 has no compiler
// Of CPU time with callouts: for a text, and for each byte of it.
constexpr double kSecondsOfText = 5, kSecondsOfByte = 1e-6;

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

// The end of `num_starts` positions from `from` on, which is not inside a character.
std::size_t end_of_starts(std::string_view text, std::size_t from, std::size_t num_starts) {
    std::size_t end = std::min(from + num_starts, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
        ++end;
    }
    return end == text.size() ? end + 1 : end;
}

}  // namespace

int MatchWatch::callout(pcre2_callout_block*, void* watch) {
    auto* const self = static_cast<MatchWatch*>(watch);
    const bool is_due = (++self->num_callouts_ & 0xfff) == 0;
    return is_due && (is_cancelled() || self->is_over()) ? PCRE2_ERROR_CALLOUT : 0;
}

bool MatchWatch::is_over() { return now() - started_ > seconds_left_; }

// The CPU time of this thread.
double MatchWatch::now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

BoundedMatch::BoundedMatch()
    : data_(require_memory(pcre2_match_data_create(1, nullptr))),
      context_(require_memory(pcre2_match_context_create(nullptr))),
      stack_(require_memory(pcre2_jit_stack_create(kJitStackStart, kJitStackMost, nullptr))) {
    pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
    pcre2_set_heap_limit(context_.get(), kMaxHeap);
    pcre2_set_callout(context_.get(), &MatchWatch::callout, &watch_);
    limit(0, std::numeric_limits<std::size_t>::max());
}

void BoundedMatch::set_limits(std::string_view text, bool is_multi_line) {
    limit(text.size(), is_multi_line ? text.size() : length_of_lines(text));
}

void BoundedMatch::limit(std::size_t text_size, std::size_t line_size) {
    line_size = std::max(line_size, kLineUnit);
    num_starts_ = line_size > kLongLine ? kNumStartsInLongLine : kNumStarts;
    num_steps_ = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(kMaxWork / num_starts_ / line_size, kFewestSteps, kMaxSteps));
    pcre2_set_match_limit(context_.get(), num_steps_);
    watch_.allow(kSecondsOfText + kSecondsOfByte * static_cast<double>(text_size));
}

std::optional<Match> BoundedMatch::find(const CompiledPattern& pattern, std::string_view text,
                                        std::size_t from) {
    int result = PCRE2_ERROR_NOMATCH;
    while (result == PCRE2_ERROR_NOMATCH && from <= text.size()) {
        std::size_t next = end_of_starts(text, from, num_starts_);
        const auto limit_starts = [&] {
            pcre2_set_offset_limit(context_.get(), next > text.size() ? PCRE2_UNSET : next - 1);
        };
        limit_starts();
        result = match(pattern.code(), text, from, 0, data_.get());
        if (result == PCRE2_ERROR_MATCHLIMIT) {
            next = end_of_starts(text, from, kNumStartsWithCallouts);
            limit_starts();
            result = match_with_callouts(pattern, text, from);
        }
        from = next;
        throw_if_cancelled();
    }
    if (result == PCRE2_ERROR_NOMATCH) {
        return std::nullopt;
    }
    if (result < 0) {
        throw SearchError("the pattern takes too many steps: " + message_of(result));
    }
    const PCRE2_SIZE* const found = pcre2_get_ovector_pointer(data_.get());
    return Match{found[0], found[1]};
}

int BoundedMatch::match(const pcre2_code* code, std::string_view text, std::size_t from,
                        std::uint32_t flags, pcre2_match_data* data) {
    const auto run = [&] {
        return pcre2_match(code, bytes_of(text), text.size(), from, flags, data, context_.get());
    };
    const int result = run();
    if (result != PCRE2_ERROR_JIT_STACKLIMIT) {
        return result;
    }
    // One thread at a time has a large stack. Memory that it does not use is not taken.
    static std::mutex one_large_stack;
    const std::lock_guard lock(one_large_stack);
    const JitStack stack(
        require_memory(pcre2_jit_stack_create(kJitStackStart, kLargeJitStack, nullptr)));
    pcre2_jit_stack_assign(context_.get(), nullptr, stack.get());
    const int result_with_more = run();
    pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
    return result_with_more;
}

int BoundedMatch::match_with_callouts(const CompiledPattern& pattern, std::string_view text,
                                      std::size_t from) {
    const pcre2_code* const code = pattern.code_with_callouts();
    if (code == nullptr) {
        return PCRE2_ERROR_MATCHLIMIT;
    }
    pcre2_set_match_limit(context_.get(), kMaxSteps);
    watch_.start();
    const int result = match(code, text, from, 0, data_.get());
    watch_.stop();
    pcre2_set_match_limit(context_.get(), num_steps_);
    if (result == PCRE2_ERROR_CALLOUT) {
        throw_if_cancelled();
        throw SearchError("the pattern takes too long on a line");
    }
    return result;
}

std::span<const std::size_t> BoundedMatch::find_groups(const CompiledPattern& pattern,
                                                       std::string_view text, const Match& match) {
    if (!groups_) {
        groups_.reset(
            require_memory(pcre2_match_data_create_from_pattern(pattern.code(), nullptr)));
    }
    pcre2_set_offset_limit(context_.get(), PCRE2_UNSET);
    pcre2_set_match_limit(context_.get(), kMaxSteps);
    const int result =
        this->match(pattern.code(), text, match.begin, PCRE2_ANCHORED, groups_.get());
    pcre2_set_match_limit(context_.get(), num_steps_);
    if (result == PCRE2_ERROR_NOMATCH) {
        whole_[0] = match.begin;  // with \K, it does not begin where the pattern does
        whole_[1] = match.end;
        return whole_;
    }
    if (result < 0) {
        throw SearchError("the groups of a match take too many steps: " + message_of(result));
    }
    return {pcre2_get_ovector_pointer(groups_.get()), 2 * static_cast<std::size_t>(result)};
}

}  // namespace gompfs::search
