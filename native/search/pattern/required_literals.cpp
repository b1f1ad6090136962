// Finds required literals; see required_literals.h.
//
// Bottom up, each node gets the strings that it can match, if they are few (it is then exact), and
// the sets that it requires. A concatenation multiplies the strings of exact nodes next to each
// other; where that stops, what was collected becomes a required set.
#include "search/pattern/required_literals.h"

#include <algorithm>
#include <utility>

#include "common/utf8.h"

namespace gompfs::search {
namespace {

using Kind = Node::Kind;

constexpr std::size_t kMaxStrings = 64;  // of a concatenation
// Of an alternation. Classes multiply literals, and a finder takes some 100 bytes for each byte.
constexpr std::size_t kMaxBytes = 2 << 20;
constexpr std::size_t kMaxLength = 256;
constexpr std::size_t kMaxClass = 8;
constexpr std::uint32_t kMaxRepeats = 16;

struct Found {
    bool is_exact = false;
    LiteralSet exact;  // may have empty strings
    std::vector<LiteralSet> required;
};

Found exactly(std::vector<std::string> strings, bool is_caseless = false) {
    return {true, {std::move(strings), is_caseless}, {}};
}

std::string lowered(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
    });
    return text;
}

void make_caseless(LiteralSet& set) {
    set.is_caseless = true;
    std::transform(set.literals.begin(), set.literals.end(), set.literals.begin(), lowered);
}

bool is_usable(const LiteralSet& set) {
    return !set.literals.empty() &&
           std::none_of(set.literals.begin(), set.literals.end(),
                        [](const std::string& literal) { return literal.empty(); });
}

// Appends each string of `set` to each of `to`. Returns false if there were too many.
bool multiply(LiteralSet& to, LiteralSet set) {
    if (to.literals.size() * set.literals.size() > kMaxStrings) {
        return false;
    }
    LiteralSet product{{}, to.is_caseless || set.is_caseless};
    if (product.is_caseless) {
        make_caseless(to);
        make_caseless(set);
    }
    for (const std::string& first : to.literals) {
        for (const std::string& second : set.literals) {
            if (first.size() + second.size() > kMaxLength) {
                return false;
            }
            product.literals.push_back(first + second);
        }
    }
    to = std::move(product);
    return true;
}

Found find(const Node& node);

Found find_in_literal(const Node& node) {
    if (node.is_caseless && node.code >= 0x80) {
        return {};
    }
    std::string text;
    if (node.is_byte) {
        text.push_back(static_cast<char>(node.code));
    } else {
        append_utf8(text, node.code);
    }
    return exactly({node.is_caseless ? lowered(text) : text}, node.is_caseless);
}

Found find_in_class(const Node& node) {
    const ClassSet& set = node.set;
    std::vector<std::string> strings;
    if (set.is_negated || set.op != ClassSet::Operator::none || !node.is_unicode) {
        return {};
    }
    for (const ClassItem& item : set.items) {
        if (item.kind != ClassItem::Kind::ranges) {
            return {};
        }
        for (const auto [first, last] : item.ranges) {
            if (last - first >= kMaxClass || strings.size() + (last - first) >= kMaxClass ||
                (node.is_caseless && last >= 0x80)) {
                return {};
            }
            for (char32_t code = first; code <= last; ++code) {
                std::string text;
                append_utf8(text, code);
                strings.push_back(node.is_caseless ? lowered(text) : text);
            }
        }
    }
    return exactly(std::move(strings), node.is_caseless);
}

Found find_in_concatenation(const std::vector<Node>& children) {
    Found all = exactly({""});
    const auto flush = [&] {
        if (is_usable(all.exact)) {
            all.required.push_back(std::move(all.exact));
        }
        all.exact = {{""}, false};
        all.is_exact = false;
    };
    for (const Node& child : children) {
        Found found = find(child);
        if (found.is_exact) {
            if (!multiply(all.exact, found.exact)) {
                flush();
                all.exact = std::move(found.exact);
            }
        } else {
            flush();
            std::move(found.required.begin(), found.required.end(),
                      std::back_inserter(all.required));
        }
    }
    if (!all.is_exact) {
        flush();
    }
    return all;
}

Found find_in_repeat(const Node& node) {
    Found child = find(node.children.front());
    if (node.least == 0) {
        if (node.most == 1 && child.is_exact && child.exact.literals.size() < kMaxClass) {
            child.exact.literals.emplace_back();
            return child;
        }
        return {};
    }
    if (!child.is_exact) {
        return child;
    }
    LiteralSet repeated{{""}, false};
    std::uint32_t count = 0;
    while (count < std::min(node.least, kMaxRepeats) && multiply(repeated, child.exact)) {
        ++count;
    }
    if (count == node.least && node.most == node.least) {
        return {true, std::move(repeated), {}};
    }
    Found found;
    if (count == 0) {
        repeated = std::move(child.exact);
    }
    if (is_usable(repeated)) {
        found.required.push_back(std::move(repeated));
    }
    return found;
}

// Prefers long literals, then few of them.
const LiteralSet* best_of(const std::vector<LiteralSet>& sets) {
    const auto best = std::max_element(
        sets.begin(), sets.end(), [](const LiteralSet& left, const LiteralSet& right) {
            return std::pair(left.shortest(), right.literals.size()) <
                   std::pair(right.shortest(), left.literals.size());
        });
    return best == sets.end() ? nullptr : &*best;
}

Found find_in_alternation(const std::vector<Node>& children) {
    LiteralSet all;
    bool is_exact = true;
    std::size_t num_bytes = 0;
    for (const Node& child : children) {
        Found found = find(child);
        is_exact = is_exact && found.is_exact;
        const LiteralSet* const set = found.is_exact ? &found.exact : best_of(found.required);
        if (set == nullptr) {
            return {};
        }
        for (const std::string& literal : set->literals) {
            num_bytes += literal.size() + 1;
        }
        if (num_bytes > kMaxBytes) {
            return {};
        }
        all.is_caseless = all.is_caseless || set->is_caseless;
        all.literals.insert(all.literals.end(), set->literals.begin(), set->literals.end());
    }
    if (all.is_caseless) {
        make_caseless(all);
    }
    Found found;
    found.is_exact = is_exact;
    if (is_exact) {
        found.exact = std::move(all);
    } else if (is_usable(all)) {
        found.required.push_back(std::move(all));
    }
    return found;
}

Found find(const Node& node) {
    switch (node.kind) {
        case Kind::literal:
            return find_in_literal(node);
        case Kind::char_class:
            return find_in_class(node);
        case Kind::any:
            return {};
        case Kind::repeat:
            return find_in_repeat(node);
        case Kind::concatenation:
            return find_in_concatenation(node.children);
        case Kind::alternation:
            return find_in_alternation(node.children);
        default:
            return exactly({""});
    }
}

bool has_assertions(const Node& pattern) {
    bool found = false;
    for_each_node(pattern, [&](const Node& node) {
        found = found || (node.kind >= Kind::line_start && node.kind <= Kind::no_word_boundary);
    });
    return found;
}

}  // namespace

std::size_t LiteralSet::shortest() const {
    std::size_t size = ~std::size_t{0};
    for (const std::string& literal : literals) {
        size = std::min(size, literal.size());
    }
    return size;
}

bool LiteralSet::has_unicode_case() const {
    return is_caseless &&
           std::any_of(literals.begin(), literals.end(), [](const std::string& each) {
               return each.find_first_of("ks") != std::string::npos;
           });
}

const LiteralSet* RequiredLiterals::best() const { return best_of(sets); }

RequiredLiterals find_required_literals(const Node& pattern) {
    Found found = find(pattern);
    RequiredLiterals required{std::move(found.required)};
    if (found.is_exact && is_usable(found.exact)) {
        required.is_exact = true;
        required.is_whole = !found.exact.is_caseless && !has_assertions(pattern);
        required.sets = {std::move(found.exact)};
    }
    return required;
}

}  // namespace gompfs::search
