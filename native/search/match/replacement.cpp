// Reads and applies the text of --replace; see replacement.h.
#include "search/match/replacement.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/cancellation.h"

namespace gompfs::search {
namespace {

bool is_name_character(char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z') || byte == '_';
}

// How long lines may get: so many bytes, and so many times as long as they were.
constexpr std::size_t kMaxReplaced = 16 << 20, kMaxGrowth = 16;

struct Reference {
    std::string_view name;
    std::size_t size;  // with the dollar sign and braces
};

// The reference at the beginning of a text, which is a dollar sign, if there is one.
std::optional<Reference> read_reference(std::string_view text) {
    const bool is_in_braces = text.substr(1).starts_with('{');
    const std::string_view rest = text.substr(is_in_braces ? 2 : 1);
    const auto end = std::find_if_not(rest.begin(), rest.end(), is_name_character);
    const std::string_view name = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    if (name.empty() || (is_in_braces && !rest.substr(name.size()).starts_with('}'))) {
        return std::nullopt;
    }
    return Reference{name, name.size() + (is_in_braces ? 3 : 1)};
}

// The number of the group that a reference names.
std::optional<std::size_t> find_group(std::string_view name,
                                      const std::vector<std::string>& names) {
    std::uint32_t number = 0;
    const char* const end = name.data() + name.size();
    if (const auto read = std::from_chars(name.data(), end, number);
        read.ec == std::errc() && read.ptr == end) {
        return number <= names.size() ? std::optional<std::size_t>(number) : std::nullopt;
    }
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(found - names.begin()) + 1;
}

}  // namespace

void ReplacedText::begin(std::size_t line_size, std::size_t wanted_size) {
    text.clear();
    matches.clear();
    wanted_size_ = wanted_size;
    max_size_ = kMaxReplaced + kMaxGrowth * line_size;
}

void ReplacedText::append(std::string_view piece) {
    if (piece.size() > max_size_ - text.size()) {
        throw SearchError("the replacement makes a line too long: more than " +
                          std::to_string(max_size_ >> 20) + " MiB");
    }
    text.append(piece);
}

Replacement::Replacement(std::string_view text, const std::vector<std::string>& names) {
    while (!text.empty()) {
        const std::size_t dollar = std::min(text.find('$'), text.size());
        rest_ += text.substr(0, dollar);
        text.remove_prefix(dollar);
        if (text.empty()) {
            return;
        }
        if (const auto reference = read_reference(text)) {
            if (const auto group = find_group(reference->name, names)) {
                parts_.push_back({std::move(rest_), *group});
                rest_.clear();
            }
            text.remove_prefix(reference->size);
        } else {
            rest_ += '$';
            text.remove_prefix(text.starts_with("$$") ? 2 : 1);
        }
    }
}

bool Replacement::has_groups() const {
    return std::any_of(parts_.begin(), parts_.end(),
                       [](const Part& part) { return part.group != 0; });
}

void Replacement::append(std::string_view text, std::span<const std::size_t> groups,
                         ReplacedText& replaced) const {
    for (const auto& [literal, group] : parts_) {
        if (replaced.is_complete()) {
            return;
        }
        throw_if_cancelled();  // a group may have many megabytes
        replaced.append(literal);
        if (2 * group + 1 < groups.size() && groups[2 * group] != kNoGroup) {
            const std::size_t begin = groups[2 * group];
            replaced.append(text.substr(begin, groups[2 * group + 1] - begin));
        }
    }
    replaced.append(rest_);
}

}  // namespace gompfs::search
