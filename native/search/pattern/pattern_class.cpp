// Parses escapes and bracketed classes of patterns; see pattern_parser.h.
#include <algorithm>
#include <string>
#include <utility>

#include "search/pattern/pattern_parser.h"
#include "search/pattern/pcre.h"

namespace gompfs::search {
namespace {

constexpr int kMaxDepth = 50;

using Kind = ClassItem::Kind;

struct NamedRanges {
    std::string_view name;
    std::vector<CodeRange> ranges;
};

const std::vector<NamedRanges>& ascii_classes() {
    static const std::vector<NamedRanges> classes = {
        {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
        {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
        {"ascii", {{0, 0x7f}}},
        {"blank", {{'\t', '\t'}, {' ', ' '}}},
        {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
        {"digit", {{'0', '9'}}},
        {"graph", {{'!', '~'}}},
        {"lower", {{'a', 'z'}}},
        {"print", {{' ', '~'}}},
        {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
        {"space", {{'\t', '\r'}, {' ', ' '}}},
        {"upper", {{'A', 'Z'}}},
        {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
        {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
    };
    return classes;
}

// Long names of general categories, which PCRE2 does not know.
constexpr std::pair<std::string_view, std::string_view> kCategories[] = {
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"casedletter", "L&"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"surrogate", "Cs"},
    {"privateuse", "Co"},
    {"unassigned", "Cn"},
};

std::string simplified(std::string_view name) {
    std::string simple;
    for (const char letter : name) {
        if (letter != '_' && letter != '-' && letter != ' ') {
            simple.push_back(letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20)
                                                            : letter);
        }
    }
    return simple;
}

ClassItem ranges_item(std::vector<CodeRange> ranges) {
    ClassItem item;
    item.ranges = std::move(ranges);
    return item;
}

ClassItem set_item(ClassSet set) {
    ClassItem item;
    item.kind = Kind::set;
    item.set = std::make_shared<ClassSet>(std::move(set));
    return item;
}

// Whether PCRE2 knows a script of this name.
bool is_script(const std::string& name) {
    const std::string pattern = "\\p{sc:" + name + "}";
    int error = 0;
    PCRE2_SIZE offset = 0;
    return Code(pcre2_compile(bytes_of(pattern), pattern.size(), PCRE2_UTF, &error, &offset,
                              nullptr)) != nullptr;
}

// Reads \p{name} after its letter, or \pL.
ClassItem parse_property(PatternReader& reader, bool is_negated) {
    std::string name;
    if (reader.take("{")) {
        for (char32_t letter; (letter = reader.next("a Unicode class")) != '}';) {
            append_utf8(name, letter);
        }
    } else {
        append_utf8(name, reader.next("a Unicode class"));
    }
    for (const char* const separator : {"!=", "=", ":"}) {
        if (const std::size_t at = name.find(separator); at != std::string::npos) {
            const std::string kind = simplified(name.substr(0, at));
            name.erase(0, at + std::string_view(separator).size());
            if (kind != "gc" && kind != "generalcategory" && kind != "sc" && kind != "script" &&
                kind != "scx" && kind != "scriptextensions") {
                reader.fail("Unicode property not found");
            }
            if (kind.starts_with("sc")) {
                name.insert(0, kind == "sc" || kind == "script" ? "sc:" : "scx:");
            }
            is_negated = is_negated != (separator[0] == '!');
            break;
        }
    }
    const std::string simple = simplified(name);
    for (const auto& [long_name, short_name] : kCategories) {
        if (simple == long_name) {
            name = short_name;
        }
    }
    const auto is_harmless = [](char letter) {
        return letter == '_' || letter == '-' || letter == ' ' || letter == ':' || letter == '&' ||
               (letter >= '0' && letter <= '9') ||
               ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z');
    };
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_harmless)) {
        reader.fail("Unicode property not found");
    }
    // PCRE2 takes the name of a script alone as Script_Extensions, and Rust as Script.
    if (name.size() > 2 && name.find(':') == std::string::npos && is_script(name)) {
        name.insert(0, "sc:");
    }
    ClassItem item;
    item.kind = Kind::property;
    item.property = name;
    item.is_negated = is_negated;
    return item;
}

char32_t parse_hexadecimal(PatternReader& reader, char32_t letter, bool& is_bracketed) {
    const auto digit_of = [&](char32_t digit) -> char32_t {
        if (digit - '0' < 10u) {
            return digit - '0';
        }
        if ((digit | 0x20) - 'a' < 6u) {
            return (digit | 0x20) - 'a' + 10;
        }
        reader.fail("invalid hexadecimal digit");
    };
    char32_t code = 0;
    is_bracketed = reader.take("{");
    if (is_bracketed) {
        bool is_empty = true;
        for (char32_t digit; (digit = reader.next("a hexadecimal number")) != '}';) {
            code = code << 4 | digit_of(digit);
            is_empty = false;
            if (code > kMaxCodePoint) {
                reader.fail("hexadecimal literal is not a Unicode scalar value");
            }
        }
        if (is_empty) {
            reader.fail("hexadecimal literal empty");
        }
    } else {
        const int num_digits = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
        for (int count = 0; count < num_digits; ++count) {
            code = code << 4 | digit_of(reader.next("a hexadecimal number"));
        }
    }
    if (code > kMaxCodePoint || is_surrogate(code)) {
        reader.fail("hexadecimal literal is not a Unicode scalar value");
    }
    return code;
}

class ClassParser {
  public:
    ClassParser(PatternReader& reader, const SyntaxFlags& flags, int depth)
        : reader_(reader), flags_(flags), depth_(depth) {}

    ClassSet parse();

  private:
    ClassSet::Operator take_operator();
    ClassItem parse_item();
    bool parse_ascii_class(ClassItem& item);
    char32_t parse_bound(std::optional<ClassItem>& item);
    void skip_space() {
        if (flags_.ignores_space) {
            reader_.skip_space();
        }
    }

    PatternReader& reader_;
    const SyntaxFlags& flags_;
    const int depth_;
};

ClassSet::Operator ClassParser::take_operator() {
    using Operator = ClassSet::Operator;
    return reader_.take("&&")   ? Operator::intersection
           : reader_.take("--") ? Operator::difference
           : reader_.take("~~") ? Operator::symmetric_difference
                                : Operator::none;
}

ClassSet ClassParser::parse() {
    if (depth_ > kMaxDepth) {
        reader_.fail("classes are nested too deeply");
    }
    const bool is_negated = reader_.take("^");
    ClassSet whole, current;
    auto op = ClassSet::Operator::none;
    // Combines what was read so far with the operator before it.
    const auto combine = [&] {
        if (op == ClassSet::Operator::none) {
            whole = std::move(current);
        } else {
            ClassSet both;
            both.op = op;
            both.left = std::make_shared<ClassSet>(std::move(whole));
            both.right = std::make_shared<ClassSet>(std::move(current));
            whole = std::move(both);
        }
        current = {};
    };
    skip_space();
    while (reader_.take("-")) {
        current.items.push_back(ranges_item({{'-', '-'}}));
        skip_space();
    }
    if (current.items.empty() && reader_.take("]")) {
        current.items.push_back(ranges_item({{']', ']'}}));
    }
    for (int num_operators = 0;;) {
        skip_space();
        if (reader_.is_at_end()) {
            reader_.fail("unclosed character class");
        }
        if (reader_.take("]")) {
            combine();
            break;
        }
        if (const auto next = take_operator(); next != ClassSet::Operator::none) {
            if (++num_operators > kMaxDepth) {
                reader_.fail("too many operators in a class");
            }
            combine();
            op = next;
        } else {
            current.items.push_back(parse_item());
        }
    }
    whole.is_negated = is_negated;
    return whole;
}

// Reads [:alpha:] after its bracket. Reads nothing and returns false if that is not what follows.
bool ClassParser::parse_ascii_class(ClassItem& item) {
    const PatternReader before = reader_;
    if (!reader_.take(":")) {
        return false;
    }
    const bool is_negated = reader_.take("^");
    for (const auto& [name, ranges] : ascii_classes()) {
        if (reader_.take(std::string(name) + ":]")) {
            ClassSet set;
            set.is_negated = is_negated;
            set.items.push_back(ranges_item(ranges));
            set.items.back().is_ascii_class = true;
            item = is_negated ? set_item(std::move(set)) : set.items.front();
            return true;
        }
    }
    reader_ = before;
    return false;
}

// Reads one character of a class, or an escape that is a class.
char32_t ClassParser::parse_bound(std::optional<ClassItem>& item) {
    const char32_t letter = reader_.next("a character");
    if (letter != '\\') {
        return letter;
    }
    const char32_t escaped = reader_.next("an escape");
    if (escaped == 'b') {
        reader_.fail("invalid escape sequence found in character class");
    }
    Escape escape = parse_escape(reader_, escaped, flags_.is_unicode);
    item = std::move(escape.item);
    return escape.code;
}

ClassItem ClassParser::parse_item() {
    ClassItem item;
    if (reader_.take("[")) {
        return parse_ascii_class(item) ? item : set_item(parse_class(reader_, flags_, depth_ + 1));
    }
    std::optional<ClassItem> first_item;
    const char32_t first = parse_bound(first_item);
    skip_space();
    if (!reader_.looking_at("-") || reader_.looking_at("-]") || reader_.looking_at("--")) {
        return first_item ? *first_item : ranges_item({{first, first}});
    }
    reader_.take("-");
    skip_space();
    std::optional<ClassItem> last_item;
    const char32_t last = parse_bound(last_item);
    if (first_item || last_item) {
        reader_.fail("invalid range boundary, must be a literal");
    }
    if (first > last) {
        reader_.fail("invalid character class range, the start must be <= the end");
    }
    return ranges_item({{first, last}});
}

}  // namespace

char32_t PatternReader::next(const char* what) {
    if (is_at_end()) {
        fail(std::string("the pattern ends where ") + what + " should follow");
    }
    const DecodedCharacter character = decode_utf8(pattern_.substr(offset_));
    if (character.size == 0) {
        fail("the pattern is not valid UTF-8 (write bytes as (?-u:\\xFF))");
    }
    offset_ += character.size;
    return character.code;
}

void PatternReader::skip_space() {
    while (!is_at_end()) {
        const char letter = pattern_[offset_];
        if (letter == '#') {
            offset_ = pattern_.find('\n', offset_);
            if (offset_ == pattern_.npos) {
                // As in ripgrep from 14 on, which writes a parenthesis after each pattern.
                offset_ = pattern_.size();
                fail("unclosed group, because of a comment to the end of the pattern");
            }
        } else if (letter == ' ' || (letter >= '\t' && letter <= '\r')) {
            ++offset_;
        } else {
            return;
        }
    }
}

void PatternReader::fail(const std::string& reason) const {
    throw PatternError("at byte " + std::to_string(offset_) + ": " + reason);
}

Escape parse_escape(PatternReader& reader, char32_t letter, bool is_unicode) {
    constexpr std::u32string_view kMeta = U"\\.+*?()|[]{}^$#&-~";
    constexpr std::pair<char32_t, char32_t> kControls[] = {
        {'a', 7}, {'f', 12}, {'t', 9}, {'n', 10}, {'r', 13}, {'v', 11}, {' ', ' '}};
    if (kMeta.find(letter) != std::u32string_view::npos) {
        return {.code = letter};
    }
    for (const auto& [name, code] : kControls) {
        if (letter == name) {
            return {.code = code};
        }
    }
    const char32_t lower = letter | 0x20;
    const bool is_negated = letter != lower;
    if (letter == 'x' || letter == 'u' || letter == 'U') {
        Escape escape;
        bool is_bracketed = false;
        escape.code = parse_hexadecimal(reader, letter, is_bracketed);
        escape.is_byte = !is_unicode && letter == 'x' && !is_bracketed && escape.code >= 0x80;
        return escape;
    }
    ClassItem item;
    item.is_negated = is_negated;
    switch (lower) {
        case 'd':
            item.kind = Kind::digit;
            return {item};
        case 's':
            item.kind = Kind::space;
            return {item};
        case 'w':
            item.kind = Kind::word;
            return {item};
        case 'p':
            if (!is_unicode) {
                reader.fail("Unicode not allowed here");
            }
            return {parse_property(reader, is_negated)};
        default:
            reader.fail(letter - '0' < 10u ? "backreferences are not supported"
                                           : "unrecognized escape sequence");
    }
}

ClassSet parse_class(PatternReader& reader, const SyntaxFlags& flags, int depth) {
    return ClassParser(reader, flags, depth).parse();
}

bool property_may_have_newline(std::string_view name) {
    const std::string simple = simplified(name);
    const bool is_category =
        std::any_of(std::begin(kCategories), std::end(kCategories),
                    [&](const auto& category) { return simplified(category.second) == simple; });
    return !is_category || simple == "c" || simple == "cc";
}

}  // namespace gompfs::search
