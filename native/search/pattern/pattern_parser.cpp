// Parses patterns in ripgrep's syntax; see pattern_syntax.h.
//
// This is a recursive descent parser. What Rust's regex crate refuses is refused here too, such as
// backreferences and unknown escapes, so that a pattern never means something else than in ripgrep.
// The depth of groups is limited, as there, which also limits all recursion over the result.
#include "search/pattern/pattern_parser.h"

#include <algorithm>
#include <utility>

namespace gompfs::search {
namespace {

constexpr int kMaxDepth = 250;
constexpr std::uint32_t kMaxRepeat = 65535;  // PCRE2's limit

using Kind = Node::Kind;

class Parser {
  public:
    Parser(std::string_view pattern, const SyntaxFlags& flags) : reader_(pattern), flags_(flags) {}

    Node parse() {
        Node node = parse_alternation();
        if (!reader_.is_at_end()) {
            reader_.fail("unopened group");
        }
        return node;
    }

  private:
    Node parse_alternation();
    Node parse_concatenation();
    bool parse_group(Node& node);
    std::string parse_group_name();
    bool parse_flags();
    void set_flag(char32_t letter, bool value);
    Node parse_atom(char32_t letter);
    Node parse_escaped();
    Node assertion(Kind kind) const;
    void parse_repeats(Node& node);
    bool parse_counts(std::uint32_t& least, std::uint32_t& most);
    std::uint32_t parse_count();

    PatternReader reader_;
    SyntaxFlags flags_;
    int depth_ = 0;
    std::vector<std::string> names_;  // of groups that have one
};

Node Parser::parse_alternation() {
    const SyntaxFlags outer = flags_;
    std::vector<Node> branches;
    do {
        branches.push_back(parse_concatenation());
    } while (reader_.take("|"));
    flags_ = outer;
    return alternate(std::move(branches));
}

Node Parser::parse_concatenation() {
    std::vector<Node> items;
    for (;;) {
        if (flags_.ignores_space) {
            reader_.skip_space();
        }
        if (reader_.is_at_end() || reader_.looking_at("|") || reader_.looking_at(")")) {
            return concatenate(std::move(items));
        }
        Node node;
        if (reader_.take("(")) {
            if (!parse_group(node)) {
                continue;  // flags for the rest of the group
            }
        } else {
            node = parse_atom(reader_.next("a character"));
        }
        parse_repeats(node);
        items.push_back(std::move(node));
    }
}

// Reads a group after its parenthesis. Returns false if it only sets flags.
bool Parser::parse_group(Node& node) {
    const SyntaxFlags outer = flags_;
    if (reader_.looking_at("?=") || reader_.looking_at("?!") || reader_.looking_at("?<=") ||
        reader_.looking_at("?<!")) {
        reader_.fail("look-around is not supported");
    }
    bool captures = flags_.groups != nullptr;
    std::string name;
    if (reader_.take("?P<") || reader_.take("?<")) {
        name = parse_group_name();
    } else if (reader_.take("?")) {
        if (!parse_flags()) {
            return false;
        }
        captures = false;
    }
    if (captures) {
        flags_.groups->push_back(std::move(name));
    }
    if (++depth_ > kMaxDepth) {
        reader_.fail("groups are nested too deeply");
    }
    node = parse_alternation();
    --depth_;
    flags_ = outer;
    if (!reader_.take(")")) {
        reader_.fail("unclosed group");
    }
    if (captures) {
        Node group;
        group.kind = Kind::group;
        group.children.push_back(std::move(node));
        node = std::move(group);
    }
    return true;
}

std::string Parser::parse_group_name() {
    std::string name;
    for (char32_t letter; (letter = reader_.next("the name of a group")) != '>';) {
        const bool is_letter = letter == '_' || (letter | 0x20) - 'a' < 26u;
        const bool is_other = letter - '0' < 10u || letter == '.' || letter == '[' || letter == ']';
        if (!is_letter && (name.empty() || !is_other)) {
            reader_.fail("invalid character in the name of a group");
        }
        name += static_cast<char>(letter);
    }
    if (name.empty()) {
        reader_.fail("empty name of a group");
    }
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) {
        reader_.fail("two groups have the same name");
    }
    names_.push_back(name);
    return name;
}

// Reads flags after "(?". Returns whether a group follows.
bool Parser::parse_flags() {
    bool value = true, is_empty = true;
    for (;;) {
        const char32_t letter = reader_.next("the flags of a group");
        if (letter == ':' || letter == ')') {
            if (!value && is_empty) {
                reader_.fail("dangling flag negation operator");
            }
            if (letter == ')' && is_empty) {
                reader_.fail("repetition operator missing expression");
            }
            return letter == ':';
        }
        if (letter == '-') {
            if (!value) {
                reader_.fail("flag negation operator repeated");
            }
            value = false;
            is_empty = true;
            continue;
        }
        set_flag(letter, value);
        is_empty = false;
    }
}

void Parser::set_flag(char32_t letter, bool value) {
    switch (letter) {
        case 'i':
            flags_.is_caseless = value;
            return;
        case 'm':
            flags_.is_multi_line = value;
            return;
        case 's':
            flags_.dot_takes_newline = value;
            return;
        case 'U':
            flags_.swaps_greed = value;
            return;
        case 'u':
            flags_.is_unicode = value;
            return;
        case 'x':
            flags_.ignores_space = value;
            return;
        default:
            reader_.fail("unrecognized flag");
    }
}

Node Parser::assertion(Kind kind) const {
    Node node;
    node.kind = kind;
    node.is_unicode = flags_.is_unicode;
    return node;
}

Node Parser::parse_atom(char32_t letter) {
    Node node;
    node.is_caseless = flags_.is_caseless;
    node.is_unicode = flags_.is_unicode;
    switch (letter) {
        case '\\':
            return parse_escaped();
        case '.':
            node.kind = Kind::any;
            node.takes_newline = flags_.dot_takes_newline;
            return node;
        case '^':
            return assertion(flags_.is_multi_line ? Kind::line_start : Kind::text_start);
        case '$':
            return assertion(flags_.is_multi_line ? Kind::line_end : Kind::text_end);
        case '[':
            node.kind = Kind::char_class;
            node.set = parse_class(reader_, flags_);
            return node;
        case '*':
        case '+':
        case '?':
        case '{':
            reader_.fail("repetition operator missing expression");
        default:
            node.kind = Kind::literal;
            node.code = letter;
            return node;
    }
}

Node Parser::parse_escaped() {
    const char32_t letter = reader_.next("an escape");
    switch (letter) {
        case 'A':
            return assertion(Kind::text_start);
        case 'z':
            return assertion(Kind::text_end);
        case 'b':
            return assertion(Kind::word_boundary);
        case 'B':
            return assertion(Kind::no_word_boundary);
        default:
            break;
    }
    Escape escape = parse_escape(reader_, letter, flags_.is_unicode);
    Node node;
    node.is_caseless = flags_.is_caseless;
    node.is_unicode = flags_.is_unicode;
    if (escape.item) {
        node.kind = Kind::char_class;
        node.set.items.push_back(std::move(*escape.item));
    } else {
        node.kind = Kind::literal;
        node.code = escape.code;
        node.is_byte = escape.is_byte;
    }
    return node;
}

// Whether `repeat` around `node` matches what `node` matches by itself, or also nothing: (a+)+ is
// a+, and (a+)* is a*. For such a pattern within a pattern, PCRE2 takes exponential time.
bool repeats_characters_already(const Node& node, const Node& repeat) {
    const auto is_unlimited = [](const Node& each) {
        return each.kind == Kind::repeat && each.least <= 1 && each.most == Node::kNoMaximum;
    };
    if (!is_unlimited(node) || !is_unlimited(repeat) || node.is_greedy != repeat.is_greedy) {
        return false;
    }
    const Kind repeated = node.children.front().kind;
    return repeated == Kind::literal || repeated == Kind::any || repeated == Kind::char_class;
}

// Reads the repetition operators after an atom.
void Parser::parse_repeats(Node& node) {
    for (int count = 0;; ++count) {
        if (flags_.ignores_space) {
            reader_.skip_space();
        }
        std::uint32_t least = 0, most = Node::kNoMaximum;
        if (reader_.take("?")) {
            most = 1;
        } else if (reader_.take("+")) {
            least = 1;
        } else if (!reader_.take("*") && !parse_counts(least, most)) {
            return;
        }
        if (count == kMaxDepth) {
            reader_.fail("too many repetition operators in a row");
        }
        Node repeat;
        repeat.kind = Kind::repeat;
        repeat.least = least;
        repeat.most = most;
        repeat.is_greedy = reader_.take("?") == flags_.swaps_greed;
        if (repeats_characters_already(node, repeat)) {
            node.least = std::min(node.least, repeat.least);
            continue;
        }
        repeat.children.push_back(std::move(node));
        node = std::move(repeat);
    }
}

bool Parser::parse_counts(std::uint32_t& least, std::uint32_t& most) {
    if (!reader_.take("{")) {
        return false;
    }
    least = parse_count();
    most = least;
    if (reader_.take(",")) {
        most = reader_.looking_at("}") ? Node::kNoMaximum : parse_count();
    }
    if (!reader_.take("}")) {
        reader_.fail("unclosed counted repetition");
    }
    if (most < least) {
        reader_.fail("invalid repetition count range, the start must be <= the end");
    }
    return true;
}

std::uint32_t Parser::parse_count() {
    std::uint32_t count = 0;
    bool is_empty = true;
    for (; reader_.peek() - '0' < 10u; is_empty = false) {
        count = count * 10 + (reader_.next("a number") - '0');
        if (count > kMaxRepeat) {
            reader_.fail("a repetition of more than 65535 times is not supported");
        }
    }
    if (is_empty) {
        reader_.fail(reader_.is_at_end() ? "unclosed counted repetition"
                                         : "repetition quantifier expects a valid decimal");
    }
    return count;
}

// Calls visit(code) for the characters that a set is written with: the ends of ranges.
template <typename Visit>
void for_each_character(const ClassSet& set, const Visit& visit) {
    if (set.op != ClassSet::Operator::none) {
        for_each_character(*set.left, visit);
        for_each_character(*set.right, visit);
    }
    for (const ClassItem& item : set.items) {
        if (item.set) {
            for_each_character(*item.set, visit);
        } else if (!item.is_ascii_class) {
            for (const CodeRange& range : item.ranges) {
                visit(range.first);
                visit(range.last);
            }
        }
    }
}

}  // namespace

Node parse_pattern(std::string_view pattern, const SyntaxFlags& flags) {
    return Parser(pattern, flags).parse();
}

bool is_uppercase(char32_t code) {
    // Letters outside of ASCII: the capitals of Latin-1, Greek and Cyrillic.
    return code - 'A' < 26u || (code >= 0xc0 && code <= 0xde && code != 0xd7) ||
           (code >= 0x391 && code <= 0x3a9) || (code >= 0x400 && code <= 0x42f) ||
           (code >= 0x100 && code < 0x137 && code % 2 == 0);
}

bool is_smartly_caseless(const Node& pattern) {
    bool has_character = false, has_uppercase = false;
    const auto look_at = [&](char32_t code) {
        has_character = true;
        has_uppercase = has_uppercase || is_uppercase(code);
    };
    for_each_node(pattern, [&](const Node& node) {
        if (node.kind == Kind::literal) {
            look_at(node.code);
        } else if (node.kind == Kind::char_class) {
            for_each_character(node.set, look_at);
        }
    });
    return has_character && !has_uppercase;
}

}  // namespace gompfs::search
