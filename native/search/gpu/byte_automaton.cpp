// Makes deterministic automata; see byte_automaton.h.
//
// A state of the deterministic automaton stands for the set of states that the nondeterministic
// automaton may be in. The set leaves out the initial states: as a match may begin anywhere, the
// automaton may be in them after every byte.
#include "search/gpu/byte_automaton.h"

#include <algorithm>
#include <map>
#include <utility>

#include "search/pattern/byte_moves.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kMaxSteps = 20'000'000;
constexpr std::uint16_t kFirst = 0;

using States = std::vector<NfaState>;  // ascending, only those with bytes and the last one

class Determiner {
  public:
    explicit Determiner(const ByteMoves& moves) : moves_(moves), is_known_(moves.states.size()) {}

    std::optional<ByteAutomaton> run();

  private:
    void find_classes();
    States closure_of(States from);
    bool has_last(const States& states) const {
        return std::binary_search(states.begin(), states.end(), moves_.last);
    }
    std::optional<std::uint16_t> number_of(States states);
    bool add_transitions(const States& from);

    const ByteMoves& moves_;
    ByteAutomaton automaton_;
    std::vector<std::uint8_t> bytes_of_classes_;  // one of each
    std::map<States, std::uint16_t> numbers_;
    std::vector<States> sets_;  // by number
    States first_;
    std::vector<bool> is_known_;  // of closure_of
    std::size_t num_steps_ = 0;
};

// Bytes are in one class if no set has only one of them.
void Determiner::find_classes() {
    auto& classes = automaton_.classes;
    std::size_t num_classes = 1;
    const auto split = [&](const ByteSet& set) {
        std::map<std::pair<std::uint8_t, bool>, std::uint8_t> numbers;
        for (std::size_t byte = 0; byte < classes.size(); ++byte) {
            const auto number = static_cast<std::uint8_t>(numbers.size());
            classes[byte] =
                numbers.try_emplace({classes[byte], set.test(byte)}, number).first->second;
        }
        num_classes = numbers.size();
    };
    split(ByteSet().set('\n'));
    for (const ByteMoves::State& state : moves_.states) {
        if (state.bytes.any() && num_classes < classes.size()) {
            split(state.bytes);
        }
    }
    automaton_.num_classes = static_cast<std::uint32_t>(num_classes);
    bytes_of_classes_.resize(num_classes);
    for (std::size_t byte = 0; byte < classes.size(); ++byte) {
        bytes_of_classes_[classes[byte]] = static_cast<std::uint8_t>(byte);
    }
}

// The states that can be entered from these without a byte, and these.
States Determiner::closure_of(States from) {
    States found;
    States known = from;
    for (const NfaState state : from) {
        is_known_[state] = true;
    }
    while (!from.empty()) {
        const NfaState state = from.back();
        from.pop_back();
        ++num_steps_;
        if (moves_.states[state].bytes.any() || state == moves_.last) {
            found.push_back(state);
        }
        for (const auto& [other, condition] : moves_.states[state].others) {
            if (!is_known_[other]) {
                is_known_[other] = true;
                known.push_back(other);
                from.push_back(other);
            }
        }
    }
    for (const NfaState state : known) {
        is_known_[state] = false;
    }
    std::sort(found.begin(), found.end());
    return found;
}

std::optional<std::uint16_t> Determiner::number_of(States states) {
    if (has_last(states)) {
        return static_cast<std::uint16_t>(kMatchedState);
    }
    const auto [found, is_new] =
        numbers_.try_emplace(std::move(states), static_cast<std::uint16_t>(sets_.size()));
    if (is_new) {
        if (sets_.size() == ByteAutomaton::kMaxStates) {
            return std::nullopt;
        }
        sets_.push_back(found->first);
    }
    return found->second;
}

// Adds the row of a state. Returns false if there are too many states.
bool Determiner::add_transitions(const States& from) {
    for (const std::uint8_t byte : bytes_of_classes_) {
        States next;
        for (const States* const states : {&from, &std::as_const(first_)}) {
            for (const NfaState state : *states) {
                if (moves_.states[state].bytes.test(byte)) {
                    next.push_back(moves_.states[state].next);
                }
            }
            num_steps_ += states->size();
        }
        std::sort(next.begin(), next.end());
        next.erase(std::unique(next.begin(), next.end()), next.end());
        const auto number = number_of(closure_of(std::move(next)));
        if (!number || num_steps_ > kMaxSteps) {
            return false;
        }
        automaton_.transitions.push_back(*number);
    }
    return true;
}

std::optional<ByteAutomaton> Determiner::run() {
    first_ = closure_of({moves_.first});
    if (first_.empty() || has_last(first_)) {
        return std::nullopt;
    }
    find_classes();
    // The state after a match has no set; its row is that of the first state.
    sets_ = {{}, {}};
    numbers_.emplace(States{}, kFirst);
    for (std::size_t number = 0; number < sets_.size(); ++number) {
        const States from = sets_[number];
        if (!add_transitions(from)) {
            return std::nullopt;
        }
    }
    automaton_.num_states = static_cast<std::uint32_t>(sets_.size());
    return std::move(automaton_);
}

}  // namespace

std::optional<ByteAutomaton> make_byte_automaton(const Node& pattern) {
    const std::optional<ByteMoves> moves = make_byte_moves(pattern, Utf8Moves::loose);
    return moves ? Determiner(*moves).run() : std::nullopt;
}

}  // namespace gompfs::search
