// A grammar in memory; see grammar.h.
#include "grammar/grammar.h"

#include <algorithm>
#include <ranges>
#include <stdexcept>

namespace gompfs {

std::uint32_t Dictionary::lower_bound(std::string_view text) const {
    const auto numbers = std::views::iota(std::uint32_t{0}, size());
    return static_cast<std::uint32_t>(
        std::ranges::lower_bound(numbers, text, {}, [this](auto number) { return word(number); }) -
        numbers.begin());
}

Dictionary make_dictionary(std::span<const std::uint64_t> starts,
                           std::span<const std::uint8_t> bytes) {
    if (starts.empty() || starts.front() != 0 || starts.back() != bytes.size() ||
        !std::is_sorted(starts.begin(), starts.end())) {
        throw std::invalid_argument("the words are not inside the bytes");
    }
    Dictionary dictionary;
    dictionary.starts.assign(starts.begin(), starts.end());
    dictionary.bytes.assign(bytes.begin(), bytes.end());
    return dictionary;
}

std::uint64_t Grammar::size_in_memory() const {
    const auto num_bytes = [](const auto& values) { return values.size() * sizeof values[0]; };
    std::uint64_t size = num_bytes(dictionary.starts) + num_bytes(dictionary.bytes);
    for (const Part& part : parts) {
        size += num_bytes(part.inos) + num_bytes(part.words) + num_bytes(part.rules.starts) +
                num_bytes(part.rules.symbols);
    }
    return size;
}

}  // namespace gompfs
