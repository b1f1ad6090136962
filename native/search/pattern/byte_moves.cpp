// Makes nondeterministic automata of patterns, as Thompson did; see byte_moves.h.
#include "search/pattern/byte_moves.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/utf8.h"

namespace gompfs::search {
namespace {

using Kind = Node::Kind;

constexpr std::size_t kMaxStates = 4096;
constexpr std::size_t kMaxSteps = 1 << 16;
constexpr char32_t kNumAscii = 0x80;

struct TooLarge {};

// The ASCII characters that a class may match, and the characters that it certainly matches. The
// two differ if the class contains an item that is not known here, such as \p{...}. One more bit
// stands for all characters outside of ASCII.
struct Members {
    std::bitset<kNumAscii + 1> may, must;

    static constexpr std::size_t kOthers = kNumAscii;

    static Members all() {
        Members members;
        members.may.set();
        members.must.set();
        return members;
    }
    Members negated() const { return {~must, ~may}; }
    Members operator|(const Members& other) const { return {may | other.may, must | other.must}; }
    Members operator&(const Members& other) const { return {may & other.may, must & other.must}; }
};

void add_both_cases(std::bitset<kNumAscii + 1>& members) {
    for (char32_t letter = 'a'; letter <= 'z'; ++letter) {
        const char32_t upper = letter ^ 0x20;
        const bool has = members[letter] || members[upper];
        members[letter] = members[upper] = has;
    }
}

bool is_ascii_word(char32_t code) {
    return code - '0' < 10u || (code | 0x20) - 'a' < 26u || code == '_';
}

Members members_of_item(const ClassItem& item, bool is_caseless);

Members members_of(const ClassSet& set, bool is_caseless) {
    Members members;
    if (set.op == ClassSet::Operator::none) {
        for (const ClassItem& item : set.items) {
            members = members | members_of_item(item, is_caseless);
        }
    } else {
        const Members left = members_of(*set.left, is_caseless);
        const Members right = members_of(*set.right, is_caseless);
        switch (set.op) {
            case ClassSet::Operator::intersection:
                members = left & right;
                break;
            case ClassSet::Operator::difference:
                members = left & right.negated();
                break;
            default:
                members = (left & right.negated()) | (right & left.negated());
        }
    }
    return set.is_negated ? members.negated() : members;
}

Members members_of_ranges(const std::vector<CodeRange>& ranges, bool is_caseless) {
    Members members;
    for (const auto& [first, last] : ranges) {
        for (char32_t code = first; code <= std::min<char32_t>(last, kNumAscii - 1); ++code) {
            members.must.set(code);
        }
        members.may[Members::kOthers] = members.may[Members::kOthers] || last >= kNumAscii;
    }
    if (is_caseless) {
        add_both_cases(members.must);
    }
    members.may |= members.must;
    if (is_caseless) {
        // Some letters outside of ASCII have k or s as their other case.
        const bool has_others = members.may[Members::kOthers];
        members.may[Members::kOthers] = has_others || members.must['k'] || members.must['s'];
        members.may['k'] = members.may['k'] || has_others;
        members.may['s'] = members.may['s'] || has_others;
        add_both_cases(members.may);
    }
    return members;
}

Members members_of_item(const ClassItem& item, bool is_caseless) {
    Members members;
    const auto fill = [&](const auto& has) {
        for (char32_t code = 0; code < kNumAscii; ++code) {
            members.must[code] = has(code);
        }
        members.may = members.must;
        members.may.set(Members::kOthers);
    };
    switch (item.kind) {
        case ClassItem::Kind::ranges:
            members = members_of_ranges(item.ranges, is_caseless);
            break;
        case ClassItem::Kind::digit:
            fill([](char32_t code) { return code - '0' < 10u; });
            break;
        case ClassItem::Kind::space:
            fill([](char32_t code) { return code == ' ' || code - '\t' < 5u; });
            break;
        case ClassItem::Kind::word:
            fill(is_ascii_word);
            break;
        case ClassItem::Kind::property:
            members.may.set();
            break;
        case ClassItem::Kind::set:
            members = members_of(*item.set, is_caseless);
            break;
    }
    const bool is_negated = item.is_negated && item.kind != ClassItem::Kind::ranges &&
                            item.kind != ClassItem::Kind::set;
    return is_negated ? members.negated() : members;
}

using Condition = ByteMoves::Condition;

ByteSet bytes_between(std::size_t first, std::size_t last) {
    ByteSet bytes;
    for (std::size_t byte = first; byte <= last; ++byte) {
        bytes.set(byte);
    }
    return bytes;
}

class Builder {
  public:
    explicit Builder(Utf8Moves utf8) : is_exact_(utf8 == Utf8Moves::exact) {}

    ByteMoves build(const Node& pattern) {
        moves_.first = add_state();
        moves_.last = append(pattern, moves_.first);
        return std::move(moves_);
    }

  private:
    NfaState add_state() {
        if (moves_.states.size() == kMaxStates) {
            throw TooLarge{};
        }
        moves_.states.emplace_back();
        return static_cast<NfaState>(moves_.states.size() - 1);
    }
    void link(NfaState from, NfaState to, Condition condition = Condition::none) {
        moves_.states[from].others.push_back({to, condition});
    }
    NfaState append_condition(Condition condition, NfaState from) {
        const NfaState next = add_state();
        link(from, next, condition);
        return next;
    }
    // A state from which a byte leads to the next one.
    NfaState before(NfaState next, const ByteSet& bytes) {
        const NfaState state = add_state();
        moves_.states[state].bytes = bytes;
        moves_.states[state].next = next;
        return state;
    }

    // Appends a move on each byte of a set.
    NfaState append_bytes(const ByteSet& bytes, NfaState from) {
        const NfaState next = add_state();
        link(from, before(next, bytes));
        return next;
    }

    NfaState append(const Node& node, NfaState from);
    NfaState append_members(const Members& members, bool is_unicode, NfaState from);
    NfaState append_other_character(NfaState from);
    NfaState append_valid_character(NfaState from);
    NfaState append_literal(const Node& node, NfaState from);
    NfaState append_repeat(const Node& node, NfaState from);
    NfaState append_alternation(const std::vector<Node>& children, NfaState from);

    const bool is_exact_;
    ByteMoves moves_;
    std::size_t num_steps_ = 0;
};

NfaState Builder::append(const Node& node, NfaState from) {
    if (++num_steps_ == kMaxSteps) {  // repeats of nothing add no states
        throw TooLarge{};
    }
    switch (node.kind) {
        case Kind::literal:
            return append_literal(node, from);
        case Kind::any:
            return append_members(Members::all(), node.is_unicode, from);
        case Kind::char_class:
            return append_members(members_of(node.set, node.is_caseless), node.is_unicode, from);
        case Kind::repeat:
            return append_repeat(node, from);
        case Kind::concatenation:
            for (const Node& child : node.children) {
                from = append(child, from);
            }
            return from;
        case Kind::alternation:
            return append_alternation(node.children, from);
        case Kind::line_start:
            return append_condition(Condition::line_start, from);
        case Kind::line_end:
            return append_condition(Condition::line_end, from);
        case Kind::text_start:
        case Kind::text_end:
        case Kind::word_boundary:
        case Kind::no_word_boundary:
            return append_condition(Condition::unsure, from);
        default:
            return from;  // nothing
    }
}

NfaState Builder::append_members(const Members& members, bool is_unicode, NfaState from) {
    ByteSet sure, unsure;
    for (std::size_t code = 0; code < kNumAscii; ++code) {
        sure[code] = members.must[code] && code != '\n';
        unsure[code] = members.may[code] && !members.must[code] && code != '\n';
    }
    const NfaState next = append_bytes(sure, from);
    if (unsure.any()) {
        link(append_bytes(unsure, append_condition(Condition::unsure, from)), next);
    }
    if (members.must[Members::kOthers] && is_unicode && is_exact_) {
        link(append_valid_character(from), next);
    } else if (members.may[Members::kOthers]) {
        link(append_other_character(append_condition(Condition::unsure, from)), next);
    }
    return next;
}

// Appends a character outside of ASCII, in valid UTF-8.
NfaState Builder::append_valid_character(NfaState from) {
    const NfaState end = add_state();
    const ByteSet continuing = bytes_between(0x80, 0xbf);
    const NfaState last = before(end, continuing), last_two = before(last, continuing);
    const NfaState last_three = before(last_two, continuing);
    const auto add = [&](std::size_t first_byte, std::size_t last_byte, NfaState rest) {
        link(from, before(rest, bytes_between(first_byte, last_byte)));
    };
    add(0xc2, 0xdf, last);
    add(0xe0, 0xe0, before(last, bytes_between(0xa0, 0xbf)));
    add(0xe1, 0xec, last_two);
    add(0xed, 0xed, before(last, bytes_between(0x80, 0x9f)));  // no surrogates
    add(0xee, 0xef, last_two);
    add(0xf0, 0xf0, before(last_two, bytes_between(0x90, 0xbf)));
    add(0xf1, 0xf3, last_three);
    add(0xf4, 0xf4, before(last_two, bytes_between(0x80, 0x8f)));
    return end;
}

// Appends a character outside of ASCII, or a byte that is not valid UTF-8.
NfaState Builder::append_other_character(NfaState from) {
    constexpr int kMaxContinuations = 3;
    const ByteSet continuing = bytes_between(0x80, 0xbf);
    NfaState state = append_bytes(bytes_between(0x80, 0xff), from);
    const NfaState end = add_state();
    link(state, end);
    for (int count = 0; count < kMaxContinuations; ++count) {
        state = append_bytes(continuing, state);
        link(state, end);
    }
    return end;
}

NfaState Builder::append_literal(const Node& node, NfaState from) {
    if (node.is_caseless && !node.is_byte) {
        return append_members(members_of_ranges({{node.code, node.code}}, true), node.is_unicode,
                              from);
    }
    std::string text;
    if (node.is_byte) {
        text.push_back(static_cast<char>(node.code));
    } else {
        append_utf8(text, node.code);
    }
    for (const char byte : text) {
        from = append_bytes(ByteSet().set(static_cast<unsigned char>(byte)), from);
    }
    return from;
}

NfaState Builder::append_repeat(const Node& node, NfaState from) {
    const Node& child = node.children.front();
    for (std::uint32_t count = 0; count < node.least; ++count) {
        from = append(child, from);
    }
    const NfaState end = add_state();
    if (node.most == Node::kNoMaximum) {
        const NfaState again = add_state();
        link(from, again);
        link(append(child, again), again);
        link(again, end);
        return end;
    }
    link(from, end);
    for (std::uint32_t count = node.least; count < node.most; ++count) {
        from = append(child, from);
        link(from, end);
    }
    return end;
}

NfaState Builder::append_alternation(const std::vector<Node>& children, NfaState from) {
    const NfaState end = add_state();
    for (const Node& child : children) {
        const NfaState start = add_state();
        link(from, start);
        link(append(child, start), end);
    }
    return end;
}

}  // namespace

std::optional<ByteMoves> make_byte_moves(const Node& pattern, Utf8Moves utf8) {
    try {
        return Builder(utf8).build(pattern);
    } catch (const TooLarge&) {
        return std::nullopt;
    }
}

}  // namespace gompfs::search
