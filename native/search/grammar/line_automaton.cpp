// Makes automata; see line_automaton.h.
//
// A state stands for the set of states that the nondeterministic automaton may be in, each with a
// bit that says whether something unsure led to it. The set leaves out the states at the beginning
// of a match: as a match may begin anywhere, the automaton may be in them after every byte.
#include "search/grammar/line_automaton.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "search/pattern/byte_moves.h"

namespace gompfs::search {
namespace {

using State = LineAutomaton::State;
using Condition = ByteMoves::Condition;

constexpr std::size_t kMaxSteps = 20'000'000;

// A state of the nondeterministic automaton, times 2, plus 1 if it is unsure. Ascending.
using States = std::vector<std::uint32_t>;

using LineEnd = LineAutomaton::LineEnd;

class Determiner {
  public:
    explicit Determiner(const ByteMoves& moves) : moves_(moves), known_(2 * moves.states.size()) {}

    // Returns false if there is no automaton.
    bool run(bool is_text);
    LineAutomaton take() { return std::move(automaton_); }

  private:
    States closure_of(States from, bool at_start, bool at_end);
    void remove_weaker(States& states) const;
    LineEnd has_last(const States& states) const;
    std::optional<State> number_of(States states);
    State add(States states);
    bool add_row(State state);
    bool add_end(State state);
    void add_undecided(bool is_text);
    bool is_marked(std::uint8_t byte) const;

    const ByteMoves& moves_;
    LineAutomaton automaton_;
    States first_;              // in which a match begins
    std::vector<States> sets_;  // by number
    std::map<States, State> numbers_;
    std::vector<std::uint8_t> known_;  // of closure_of
    std::size_t num_steps_ = 0;
};

// The states that can be entered from these without a byte, and these; only those that something
// follows from.
States Determiner::closure_of(States from, bool at_start, bool at_end) {
    States found, seen = from;
    for (const std::uint32_t state : from) {
        known_[state] = 1;
    }
    while (!from.empty()) {
        const std::uint32_t state = from.back();
        from.pop_back();
        const ByteMoves::State& moves = moves_.states[state / 2];
        bool matters = moves.bytes.any() || state / 2 == moves_.last;
        num_steps_ += 1 + moves.others.size();
        for (const auto& [to, condition] : moves.others) {
            matters = matters || condition == Condition::line_end;
            if ((condition == Condition::line_start && !at_start) ||
                (condition == Condition::line_end && !at_end)) {
                continue;
            }
            const std::uint32_t entered =
                2 * to + (state % 2 | (condition == Condition::unsure ? 1 : 0));
            if (known_[entered] == 0) {
                known_[entered] = 1;
                seen.push_back(entered);
                from.push_back(entered);
            }
        }
        if (matters) {
            found.push_back(state);
        }
    }
    for (const std::uint32_t state : seen) {
        known_[state] = 0;
    }
    std::sort(found.begin(), found.end());
    return found;
}

// Removes the states that the automaton is in anyway, and unsure ones that are sure, too.
void Determiner::remove_weaker(States& states) const {
    const auto has = [](const States& all, std::uint32_t state) {
        return std::binary_search(all.begin(), all.end(), state);
    };
    States kept;
    for (const std::uint32_t state : states) {
        const std::uint32_t sure = state & ~1u;
        if (!has(first_, sure) && !has(first_, state) && (sure == state || !has(states, sure))) {
            kept.push_back(state);
        }
    }
    states = std::move(kept);
}

LineEnd Determiner::has_last(const States& states) const {
    const auto has = [&](std::uint32_t state) {
        return std::binary_search(states.begin(), states.end(), state);
    };
    return has(2 * moves_.last)       ? LineEnd::match
           : has(2 * moves_.last + 1) ? LineEnd::unsure
                                      : LineEnd::no_match;
}

State Determiner::add(States states) {
    sets_.push_back(std::move(states));
    return static_cast<State>(sets_.size() - 1);
}

std::optional<State> Determiner::number_of(States states) {
    if (const LineEnd found = has_last(states); found != LineEnd::no_match) {
        return found == LineEnd::match ? LineAutomaton::kMatched : LineAutomaton::kUndecided;
    }
    remove_weaker(states);
    const auto found = numbers_.find(states);
    if (found != numbers_.end()) {
        return found->second;
    }
    if (sets_.size() == LineAutomaton::kMaxStates) {
        return std::nullopt;
    }
    const State number = add(states);
    numbers_.emplace(std::move(states), number);
    return number;
}

// Adds the moves of a state. Returns false if there are too many states.
bool Determiner::add_row(State state) {
    const States from = sets_[state];
    States before;  // what the byte before leads to
    State number = 0;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        States next;
        for (const States* const states : {&from, &std::as_const(first_)}) {
            for (const std::uint32_t each : *states) {
                const ByteMoves::State& moves = moves_.states[each / 2];
                if (moves.bytes.test(byte)) {
                    next.push_back(2 * moves.next + each % 2);
                }
            }
            num_steps_ += states->size();
        }
        std::sort(next.begin(), next.end());
        next.erase(std::unique(next.begin(), next.end()), next.end());
        if (byte == 0 || next != before) {
            before = next;
            const std::optional<State> found = number_of(closure_of(std::move(next), false, false));
            if (!found || num_steps_ > kMaxSteps) {
                return false;
            }
            number = *found;
        }
        automaton_.moves.push_back(number);
    }
    return true;
}

// Sets what the end of a line means in a state. Returns false if a line matches that has nothing
// else.
bool Determiner::add_end(State state) {
    States all = sets_[state];
    all.insert(all.end(), first_.begin(), first_.end());
    const bool is_line_start = state == automaton_.line_start && state != LineAutomaton::kStart;
    if (is_line_start) {
        all.push_back(2 * moves_.first);
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const LineEnd found = state == LineAutomaton::kMatched
                              ? LineEnd::match
                              : has_last(closure_of(std::move(all), is_line_start, true));
    automaton_.line_ends.push_back(found);
    automaton_.moves[state * 256u + '\n'] =
        found == LineEnd::unsure ? LineAutomaton::kUndecided : automaton_.line_start;
    return state != LineAutomaton::kStart || found == LineEnd::no_match;
}

// Whether the byte may begin a byte order mark that matters.
bool Determiner::is_marked(std::uint8_t byte) const {
    constexpr std::uint8_t kFirstOfUtf8 = 0xef;
    return byte >= 0xfe ||
           (byte == kFirstOfUtf8 && (automaton_.line_start != LineAutomaton::kStart ||
                                     std::any_of(moves_.states.begin(), moves_.states.end(),
                                                 [](const ByteMoves::State& each) {
                                                     return each.bytes.test(kFirstOfUtf8);
                                                 })));
}

void Determiner::add_undecided(bool is_text) {
    const auto state_at = [&](std::size_t state, std::size_t byte) -> State& {
        return automaton_.moves[state * 256 + byte];
    };
    for (std::size_t byte = 0; byte < 256; ++byte) {
        const bool is_odd = (byte == 0 && !is_text) || is_marked(static_cast<std::uint8_t>(byte));
        for (std::size_t state = 0; state < sets_.size(); ++state) {
            if (is_odd || state == LineAutomaton::kUndecided) {
                state_at(state, byte) = LineAutomaton::kUndecided;
            }
        }
        automaton_.leaves[byte] = state_at(LineAutomaton::kStart, byte) != LineAutomaton::kStart;
        automaton_.ends[byte] = state_at(LineAutomaton::kMatched, byte) != LineAutomaton::kMatched;
    }
}

bool Determiner::run(bool is_text) {
    first_ = closure_of({2 * moves_.first}, false, false);
    States at_start = closure_of({2 * moves_.first}, true, false);
    if (has_last(first_) != LineEnd::no_match || has_last(at_start) != LineEnd::no_match) {
        return false;
    }
    sets_ = {{}, {}, {}};  // kStart, kMatched and kUndecided
    numbers_.emplace(States{}, LineAutomaton::kStart);
    remove_weaker(at_start);
    if (!at_start.empty()) {
        // It is no other state: at the end of a file, no line ends in it.
        automaton_.line_start = add(std::move(at_start));
    }
    for (std::size_t state = 0; state < sets_.size(); ++state) {
        if (!add_row(static_cast<State>(state)) || !add_end(static_cast<State>(state))) {
            return false;
        }
    }
    const auto matched = automaton_.moves.begin() + LineAutomaton::kMatched * 256;
    std::fill(matched, matched + 256, LineAutomaton::kMatched);
    automaton_.moves[LineAutomaton::kMatched * 256 + '\n'] = automaton_.line_start;
    add_undecided(is_text);
    return true;
}

// By state: kStart if the state goes on like it at the border after a token, else the state.
std::vector<State> at_borders(const LineAutomaton& automaton, WordRule rule, bool is_after_word) {
    std::vector<State> states(automaton.line_ends.size());
    for (std::size_t state = 0; state < states.size(); ++state) {
        bool is_same = automaton.line_ends[state] == LineEnd::no_match;
        for (std::size_t byte = 0; byte < 256 && is_same; ++byte) {
            // Under the rule `letters`, bytes from 0x80 on may be on either side.
            const bool may_follow = is_separator(rule, static_cast<char>(byte)) == is_after_word ||
                                    (rule == WordRule::letters && byte >= 0x80);
            is_same = !may_follow || automaton.moves[state * 256 + byte] == automaton.moves[byte];
        }
        // At the end of a file, all states but kUndecided that have no match are the same.
        is_same = is_same && state != LineAutomaton::kUndecided;
        states[state] = is_same ? LineAutomaton::kStart : static_cast<State>(state);
    }
    return states;
}

}  // namespace

std::optional<LineAutomaton::Effect> LineAutomaton::run(Bytes text, State from) const {
    std::uint32_t num_lines = 0;
    State state = from;
    for (const std::uint8_t byte : text) {
        num_lines += byte == '\n' && line_ends[state] == LineEnd::match ? 1 : 0;
        state = next(state, byte);
    }
    constexpr std::uint32_t kMost = 0xffff;
    return num_lines > kMost ? std::nullopt
                             : std::optional(Effect{state, static_cast<std::uint16_t>(num_lines)});
}

std::optional<LineAutomaton> make_line_automaton(const Node& pattern, WordRule rule, bool is_text) {
    const std::optional<ByteMoves> moves = make_byte_moves(pattern, Utf8Moves::exact);
    if (!moves) {
        return std::nullopt;
    }
    Determiner determiner(*moves);
    if (!determiner.run(is_text)) {
        return std::nullopt;
    }
    LineAutomaton automaton = determiner.take();
    automaton.after_word = at_borders(automaton, rule, true);
    automaton.after_separator = at_borders(automaton, rule, false);
    for (std::size_t state = 0; state < automaton.line_ends.size(); ++state) {
        automaton.after_space.push_back(
            automaton.after_separator[automaton.moves[state * 256 + ' ']]);
    }
    return automaton;
}

}  // namespace gompfs::search
