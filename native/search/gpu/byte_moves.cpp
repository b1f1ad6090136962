// Makes nondeterministic automata of patterns, as Thompson did; see byte_moves.h.
#include "search/gpu/byte_moves.h"

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

class Builder {
  public:
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
    void link(NfaState from, NfaState to) { moves_.states[from].others.push_back(to); }

    // Appends a move on each byte of a set.
    NfaState append_bytes(const ByteSet& bytes, NfaState from) {
        const NfaState state = add_state(), next = add_state();
        link(from, state);
        moves_.states[state].bytes = bytes;
        moves_.states[state].next = next;
        return next;
    }

    NfaState append(const Node& node, NfaState from);
    NfaState append_members(const Members& members, NfaState from);
    NfaState append_other_character(NfaState from);
    NfaState append_literal(const Node& node, NfaState from);
    NfaState append_repeat(const Node& node, NfaState from);
    NfaState append_alternation(const std::vector<Node>& children, NfaState from);

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
            return append_members(Members::all(), from);
        case Kind::char_class:
            return append_members(members_of(node.set, node.is_caseless), from);
        case Kind::repeat:
            return append_repeat(node, from);
        case Kind::concatenation:
            for (const Node& child : node.children) {
                from = append(child, from);
            }
            return from;
        case Kind::alternation:
            return append_alternation(node.children, from);
        default:
            return from;  // an assertion, or nothing
    }
}

NfaState Builder::append_members(const Members& members, NfaState from) {
    ByteSet bytes;
    for (std::size_t code = 0; code < kNumAscii; ++code) {
        bytes[code] = members.may[code] && code != '\n';
    }
    const NfaState next = append_bytes(bytes, from);
    if (members.may[Members::kOthers]) {
        link(append_other_character(from), next);
    }
    return next;
}

// Appends a character outside of ASCII, or a byte that is not valid UTF-8.
NfaState Builder::append_other_character(NfaState from) {
    constexpr int kMaxContinuations = 3;
    ByteSet leading, continuing;
    for (std::size_t byte = 0x80; byte < 0x100; ++byte) {
        leading.set(byte);
        continuing[byte] = byte < 0xc0;
    }
    NfaState state = append_bytes(leading, from);
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
        return append_members(members_of_ranges({{node.code, node.code}}, true), from);
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

std::optional<ByteMoves> make_byte_moves(const Node& pattern) {
    try {
        return Builder().build(pattern);
    } catch (const TooLarge&) {
        return std::nullopt;
    }
}

}  // namespace gompfs::search
