// The parsed form of a pattern in ripgrep's syntax, which is that of Rust's regex crate.
//
// A pattern is parsed once (pattern_parser.cpp), and then used twice: it is written again in the
// syntax of PCRE2 (pcre_text.cpp), and literals that every match contains are taken from it
// (required_literals.cpp). Flags such as (?i) are resolved by the parser: each node says how it
// matches. Groups are left out of it, unless what they capture is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gompfs::search {

// A pattern that cannot be used. The message says why, and is one line.
class PatternError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct CodeRange {
    char32_t first, last;
};

// One member of a class: characters, or a class of its own.
struct ClassSet;
struct ClassItem {
    enum class Kind { ranges, digit, space, word, property, set };
    Kind kind = Kind::ranges;
    bool is_negated = false;        // of all kinds but `ranges` and `set`
    std::vector<CodeRange> ranges;  // for `ranges`
    bool is_ascii_class = false;    // the ranges of [:alpha:] or another class with a name
    std::string property;           // for `property`: a name that PCRE2 knows
    std::shared_ptr<ClassSet> set;  // for `set`
};

// A set of characters: the union of its items; or what an operator makes of two sets.
struct ClassSet {
    enum class Operator { none, intersection, difference, symmetric_difference };
    bool is_negated = false;
    std::vector<ClassItem> items;
    Operator op = Operator::none;
    std::shared_ptr<ClassSet> left, right;  // if there is an operator
};

struct Node {
    enum class Kind {
        empty,
        literal,  // the character `code`, or the byte `code` if is_byte
        any,      // . in all its forms
        char_class,
        line_start,
        line_end,
        text_start,
        text_end,
        word_boundary,
        no_word_boundary,
        repeat,
        concatenation,
        alternation,
        group,  // that captures
    };
    static constexpr std::uint32_t kNoMaximum = ~std::uint32_t{0};

    Kind kind = Kind::empty;
    bool is_caseless = false;    // literal, char_class
    bool is_unicode = true;      // literal, any, char_class, boundaries
    bool is_byte = false;        // literal
    bool takes_newline = false;  // any
    bool is_greedy = true;       // repeat
    char32_t code = 0;
    std::uint32_t least = 0, most = 0;  // repeat
    ClassSet set;
    std::vector<Node> children;
};

struct SyntaxFlags {
    bool is_caseless = false;
    bool is_multi_line = true;
    bool dot_takes_newline = false;
    bool swaps_greed = false;
    bool is_unicode = true;
    bool ignores_space = false;
    // If this is given, groups are nodes, and their names are appended here: the first one is that
    // of group 1, and groups without a name have an empty one.
    std::vector<std::string>* groups = nullptr;
};

// Parses a pattern. Throws PatternError.
Node parse_pattern(std::string_view pattern, const SyntaxFlags& flags = {});

// Whether --smart-case ignores case: the pattern has characters as such, not only classes with
// names, and none of them is uppercase.
bool is_smartly_caseless(const Node& pattern);

// Whether --smart-case takes a character for an uppercase letter.
bool is_uppercase(char32_t code);

// Whether a Unicode property, which PCRE2 knows, may include the line feed. Exact for general
// categories.
bool property_may_have_newline(std::string_view name);

// Calls visit(node) for a node and all nodes below it.
template <typename Visit>
void for_each_node(const Node& node, const Visit& visit) {
    visit(node);
    for (const Node& child : node.children) {
        for_each_node(child, visit);
    }
}

inline Node concatenate(std::vector<Node> children) {
    if (children.size() == 1) {
        return std::move(children.front());
    }
    Node node;
    node.kind = children.empty() ? Node::Kind::empty : Node::Kind::concatenation;
    node.children = std::move(children);
    return node;
}

inline Node alternate(std::vector<Node> children) {
    if (children.size() == 1) {
        return std::move(children.front());
    }
    Node node;
    node.kind = Node::Kind::alternation;
    node.children = std::move(children);
    return node;
}

}  // namespace gompfs::search
