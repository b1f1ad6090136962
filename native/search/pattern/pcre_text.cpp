// Writes patterns for PCRE2; see pcre_text.h.
#include "search/pattern/pcre_text.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/utf8.h"

namespace gompfs::search {
namespace {

using Kind = Node::Kind;

constexpr char32_t kLongS = 0x17f, kKelvin = 0x212a;  // fold to s and k
// The text of a pattern. PCRE2 compiles no more than 64 KiB, and a character may need ten bytes.
constexpr std::size_t kMaxText = 16 << 20;
constexpr std::string_view kNothing = "(?!)";
constexpr std::string_view kAnything = "(?s:.)";
constexpr std::string_view kAsciiWord = "0-9A-Z_a-z";
constexpr std::string_view kAsciiSpace = "\\x09-\\x0d\\x20";
// Rust's definitions. PCRE2's own \w and \s are narrower.
constexpr std::string_view kUnicodeWord =
    "\\p{L}\\p{Nl}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}"
    "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";
constexpr std::string_view kUnicodeSpace =
    "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";

void check_size(const std::string& text) {
    if (text.size() > kMaxText) {
        throw PatternError("the pattern is too large");
    }
}

bool is_alphanumeric(char32_t code) {
    return code - '0' < 10u || code - 'A' < 26u || code - 'a' < 26u;
}

std::string character(char32_t code) {
    if (is_alphanumeric(code)) {
        return {static_cast<char>(code)};
    }
    char text[16];
    std::snprintf(text, sizeof text, "\\x{%x}", static_cast<unsigned>(code));
    return text;
}

class Writer {
  public:
    Writer(TextKind kind, bool is_multi_line, bool is_crlf, bool is_all_caseless)
        : kind_(kind),
          is_multi_line_(is_multi_line),
          is_crlf_(is_crlf),
          is_all_caseless_(is_all_caseless) {}

    void write(const Node& node);
    void write_group(const Node& node) {
        text += "(?:";
        write(node);
        text += ')';
    }
    // [...] of the characters of words.
    std::string word_class(bool is_unicode) const {
        return "[" + std::string(word_items(is_unicode)) + "]";
    }

    std::string text;

  private:
    std::string_view word_items(bool is_unicode) const {
        return is_unicode && kind_ == TextKind::utf8 ? kUnicodeWord : kAsciiWord;
    }
    std::string_view space_items(bool is_unicode) const {
        return is_unicode && kind_ == TextKind::utf8 ? kUnicodeSpace : kAsciiSpace;
    }

    // Calls write_content() for something that is caseless or not.
    template <typename Write>
    void write_with_case(bool is_caseless, const Write& write_content) {
        const bool is_wrapped = is_caseless && !is_all_caseless_;
        text += is_wrapped ? "(?i:" : "";
        write_content();
        text += is_wrapped ? ")" : "";
    }
    void write_concatenation(const std::vector<Node>& children);
    void write_literal(const Node& node);
    void write_class(const Node& node);
    void write_boundary(const Node& node);
    void write_repeat(const Node& node);
    std::string class_items(const ClassItem& item, const Node& node, bool& is_inline) const;
    std::string ranges(const ClassItem& item, const Node& node) const;
    std::string one_of(const ClassSet& set, const Node& node) const;
    std::string plain_set(const ClassSet& set, const Node& node, bool& is_plain) const;

    const TextKind kind_;
    const bool is_multi_line_;
    const bool is_crlf_;
    const bool is_all_caseless_;
};

void Writer::write(const Node& node) {
    check_size(text);
    switch (node.kind) {
        case Kind::empty:
            return;
        case Kind::literal:
            write_with_case(node.is_caseless, [&] { write_literal(node); });
            return;
        case Kind::any:
            text += node.takes_newline && is_multi_line_ ? kAnything : ".";
            return;
        case Kind::char_class:
            write_with_case(node.is_caseless, [&] { write_class(node); });
            return;
        case Kind::line_start:
            text += '^';
            return;
        case Kind::line_end:
            text += '$';
            return;
        case Kind::text_start:
            text += is_multi_line_ ? "\\A" : "^";
            return;
        case Kind::text_end:
            text += is_multi_line_ ? "\\z" : "$";
            return;
        case Kind::word_boundary:
        case Kind::no_word_boundary:
            write_boundary(node);
            return;
        case Kind::repeat:
            write_repeat(node);
            return;
        case Kind::concatenation:
            write_concatenation(node.children);
            return;
        case Kind::alternation:
            if (node.children.empty()) {
                text += kNothing;
                return;
            }
            text += "(?:";
            for (const Node& child : node.children) {
                write(child);
                text += '|';
            }
            text.back() = ')';
            return;
        case Kind::group:
            text += '(';
            write(node.children.front());
            text += ')';
            return;
    }
}

void Writer::write_concatenation(const std::vector<Node>& children) {
    for (auto child = children.begin(); child != children.end();) {
        if (child->kind != Kind::literal) {
            write(*child++);
            continue;
        }
        const bool is_caseless = child->is_caseless;
        write_with_case(is_caseless, [&] {
            for (; child != children.end() && child->kind == Kind::literal &&
                   child->is_caseless == is_caseless;
                 ++child) {
                write_literal(*child);
            }
        });
    }
}

void Writer::write_literal(const Node& node) {
    const char32_t code = node.code;
    if (!is_multi_line_ && (code == '\n' || (code == '\r' && is_crlf_))) {
        throw PatternError("a pattern cannot match a line feed, except with --multiline (-U)");
    }
    if (code < 0x80 || kind_ == TextKind::utf8 || node.is_byte) {
        text += character(code);
    } else if (kind_ == TextKind::bytes) {
        std::string bytes;
        append_utf8(bytes, code);
        text += "(?:";
        for (const char byte : bytes) {
            text += character(static_cast<unsigned char>(byte));
        }
        text += ')';
    } else if (node.is_caseless && (code == kLongS || code == kKelvin)) {
        text += code == kLongS ? 's' : 'k';
    } else {
        text += kNothing;
    }
}

void Writer::write_boundary(const Node& node) {
    const bool is_boundary = node.kind == Kind::word_boundary;
    if (kind_ != TextKind::utf8 || !node.is_unicode) {
        text += is_boundary ? "\\b" : "\\B";
        return;
    }
    const std::string word = word_class(true), no_word = "[^" + word.substr(1);
    if (is_boundary) {
        text += "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))";
    } else {
        // Next to bytes that are not UTF-8, it does not match.
        text += "(?:(?<=" + word + ")(?=" + word + ")|(?:^|(?<=" + no_word +
                "))(?:$|(?=" + no_word + ")))";
    }
}

void Writer::write_repeat(const Node& node) {
    // PCRE2 repeats single characters faster than groups.
    Writer child(kind_, is_multi_line_, is_crlf_, is_all_caseless_);
    child.write(node.children.front());
    const bool is_bracket = child.text.size() > 2 && child.text.starts_with('[') &&
                            child.text.find(']') == child.text.size() - 1;
    const bool is_character =
        child.text.size() == 1 &&
        (child.text[0] == '.' || is_alphanumeric(static_cast<unsigned char>(child.text[0])));
    text += is_bracket || is_character ? child.text : "(?:" + child.text + ')';
    if (node.most != Node::kNoMaximum || node.least > 1) {
        text += '{' + std::to_string(node.least);
        if (node.most != node.least) {
            text += ',' + (node.most == Node::kNoMaximum ? "" : std::to_string(node.most));
        }
        text += '}';
    } else {
        text += node.least == 0 ? '*' : '+';
    }
    text += node.is_greedy ? "" : "?";
}

std::string Writer::ranges(const ClassItem& item, const Node& node) const {
    std::string text;
    for (auto [first, last] : item.ranges) {
        const auto has = [&](char32_t code) { return first <= code && code <= last; };
        if (kind_ == TextKind::ascii && node.is_caseless && node.is_unicode) {
            text += has(kLongS) ? "s" : "";
            text += has(kKelvin) ? "k" : "";
        }
        const char32_t highest = kind_ == TextKind::utf8    ? kMaxCodePoint
                                 : kind_ == TextKind::bytes ? 0xff
                                                            : 0x7f;
        if (first <= highest) {
            last = std::min(last, highest);
            text += character(first) + (first == last ? "" : '-' + character(last));
        }
    }
    return text;
}

// Without case, a letter of one case stands for those of all cases, which PCRE2 does not know.
const std::string& property_of(const ClassItem& item, const Node& node) {
    static const std::string kLetterOfAnyCase = "L&";
    const bool has_case = item.property == "Lu" || item.property == "Ll" || item.property == "Lt";
    return node.is_caseless && has_case ? kLetterOfAnyCase : item.property;
}

// An item as it is written in brackets; or, if that is not possible, as an expression of its own.
std::string Writer::class_items(const ClassItem& item, const Node& node, bool& is_inline) const {
    is_inline = true;
    switch (item.kind) {
        case ClassItem::Kind::ranges:
            return ranges(item, node);
        case ClassItem::Kind::digit:
            if (node.is_unicode && kind_ == TextKind::utf8) {
                return item.is_negated ? "\\P{Nd}" : "\\p{Nd}";
            }
            return item.is_negated ? "\\D" : "0-9";
        case ClassItem::Kind::property:
            return (item.is_negated ? "\\P{" : "\\p{") + property_of(item, node) + '}';
        case ClassItem::Kind::set:
            is_inline = false;
            return one_of(*item.set, node);
        default:
            break;
    }
    const std::string items(item.kind == ClassItem::Kind::word ? word_items(node.is_unicode)
                                                               : space_items(node.is_unicode));
    is_inline = !item.is_negated;
    return item.is_negated ? "[^" + items + ']' : items;
}

// The union of the items of a set, without its negation: what stands in brackets, or an expression.
std::string Writer::plain_set(const ClassSet& set, const Node& node, bool& is_plain) const {
    std::string in_brackets, others;
    for (const ClassItem& item : set.items) {
        bool is_inline = false;
        const std::string text = class_items(item, node, is_inline);
        if (is_inline) {
            in_brackets += text;
        } else {
            others += (others.empty() ? "" : "|") + text;
        }
    }
    is_plain = others.empty();
    if (is_plain) {
        return in_brackets;
    }
    return "(?:" + others + (in_brackets.empty() ? "" : "|[" + in_brackets + ']') + ')';
}

// An expression that matches one character of a set. An operator may write its operands twice, so
// the size doubles with each.
std::string Writer::one_of(const ClassSet& set, const Node& node) const {
    std::string text;
    if (set.op == ClassSet::Operator::none) {
        bool is_plain = false;
        text = plain_set(set, node, is_plain);
        if (is_plain) {
            if (text.empty()) {
                return std::string(set.is_negated ? kAnything : kNothing);
            }
            return (set.is_negated ? "[^" : "[") + text + ']';
        }
    } else {
        const std::string left = one_of(*set.left, node), right = one_of(*set.right, node);
        text = set.op == ClassSet::Operator::intersection ? "(?:(?=" + left + ')' + right + ')'
               : set.op == ClassSet::Operator::difference
                   ? "(?:(?!" + right + ')' + left + ')'
                   : "(?:(?!" + right + ')' + left + "|(?!" + left + ')' + right + ')';
    }
    check_size(text);
    return set.is_negated ? "(?:(?!" + text + ')' + std::string(kAnything) + ')' : text;
}

bool may_have_newline(const ClassItem& item) {
    switch (item.kind) {
        case ClassItem::Kind::ranges:
            return std::any_of(item.ranges.begin(), item.ranges.end(), [](const CodeRange& range) {
                return range.first <= '\n' && '\n' <= range.last;
            });
        case ClassItem::Kind::space:
            return !item.is_negated;
        case ClassItem::Kind::word:
        case ClassItem::Kind::digit:
            return item.is_negated;
        case ClassItem::Kind::property:
            return item.is_negated || property_may_have_newline(item.property);
        default:
            return true;
    }
}

// Whether may_have_newline(item) means that it has.
bool is_exact(const ClassItem& item) {
    return item.kind == ClassItem::Kind::property ? !property_may_have_newline(item.property)
                                                  : item.kind != ClassItem::Kind::set;
}

// Exact for sets without operators and sets in them, whose properties are general categories.
bool may_have_newline(const ClassSet& set) {
    if (set.op != ClassSet::Operator::none) {
        return true;
    }
    const bool has = std::any_of(set.items.begin(), set.items.end(),
                                 [](const ClassItem& item) { return may_have_newline(item); });
    const bool is_certain = std::all_of(set.items.begin(), set.items.end(), is_exact);
    return is_certain ? has != set.is_negated : true;
}

void Writer::write_class(const Node& node) {
    const ClassSet& set = node.set;
    const std::string expression = one_of(set, node);
    if (is_multi_line_ || expression == kNothing) {
        text += expression;
    } else if (expression == kAnything) {
        text += '.';
    } else if (expression.starts_with("[^")) {
        text += expression.substr(0, expression.size() - 1) + (is_crlf_ ? "\\r\\n]" : "\\n]");
    } else if (is_crlf_) {
        text += "(?:(?![\\r\\n])" + expression + ')';
    } else if (!may_have_newline(set)) {
        text += expression;
    } else {
        text += "(?:(?!\\n)" + expression + ')';
    }
}

bool is_outside_of_ascii(const ClassSet& set) {
    return set.is_negated || set.op != ClassSet::Operator::none ||
           std::any_of(set.items.begin(), set.items.end(), [](const ClassItem& item) {
               return item.is_negated || item.kind == ClassItem::Kind::property || item.set ||
                      std::any_of(item.ranges.begin(), item.ranges.end(),
                                  [](const CodeRange& range) { return range.last >= 0x80; });
           });
}

bool needs_bytes(const Node& node) {
    return (node.kind == Kind::literal && node.is_byte) ||
           (node.kind == Kind::any && !node.is_unicode) ||
           (node.kind == Kind::char_class && !node.is_unicode && is_outside_of_ascii(node.set));
}

bool needs_unicode(const Node& node) {
    switch (node.kind) {
        case Kind::literal:
            return node.is_unicode && node.is_caseless;
        case Kind::char_class:
            return node.is_unicode && (node.is_caseless || is_outside_of_ascii(node.set) ||
                                       std::any_of(node.set.items.begin(), node.set.items.end(),
                                                   [](const ClassItem& item) {
                                                       return item.kind != ClassItem::Kind::ranges;
                                                   }));
        case Kind::any:
        case Kind::word_boundary:
        case Kind::no_word_boundary:
            return node.is_unicode;
        default:
            return false;
    }
}

}  // namespace

bool matches_bytes(const Node& pattern) {
    bool has_bytes = false, has_unicode = false;
    for_each_node(pattern, [&](const Node& node) {
        has_bytes = has_bytes || needs_bytes(node);
        has_unicode = has_unicode || needs_unicode(node);
    });
    if (has_bytes && has_unicode) {
        throw PatternError(
            "a pattern that matches both bytes and Unicode characters is not supported; write "
            "(?-u) at its beginning");
    }
    return has_bytes;
}

bool matches_newline(const Node& pattern, bool is_crlf) {
    bool found = false;
    for_each_node(pattern, [&](const Node& node) {
        const bool is_anchor = node.kind == Kind::line_start || node.kind == Kind::line_end ||
                               node.kind == Kind::text_start || node.kind == Kind::text_end;
        found = found || is_anchor || (node.kind == Kind::literal && node.code == '\n') ||
                (node.kind == Kind::literal && node.code == '\r' && is_crlf) ||
                (node.kind == Kind::any && node.takes_newline) ||
                (node.kind == Kind::char_class && may_have_newline(node.set));
    });
    return found;
}

PcreText write_pcre(const Node& pattern, TextKind kind, MatchBounds bounds, bool is_multi_line,
                    bool is_crlf) {
    bool is_all_caseless = true, is_unicode = true;
    for_each_node(pattern, [&](const Node& node) {
        if (node.kind == Kind::literal || node.kind == Kind::char_class) {
            is_all_caseless = is_all_caseless && node.is_caseless;
        }
        is_unicode = is_unicode && !needs_bytes(node);
    });
    Writer writer(kind, is_multi_line, is_crlf, is_all_caseless);
    const std::string no_word = "[^" + writer.word_class(is_unicode).substr(1);
    switch (bounds) {
        case MatchBounds::any:
            writer.write(pattern);
            break;
        case MatchBounds::words:
            // Not (?<!\w): next to a match there must be a valid character, or the end of a line.
            writer.text = "(?:^|(?<=" + no_word + "))";
            writer.write_group(pattern);
            writer.text += "(?=$|" + no_word + ')';
            break;
        case MatchBounds::lines:
            writer.text = "^";
            writer.write_group(pattern);
            writer.text += '$';
            break;
    }
    return {std::move(writer.text), is_all_caseless, false};
}

}  // namespace gompfs::search
