// A grammar in memory; see grammar.h.
#include "text/grammar.h"

#include <algorithm>
#include <ranges>

namespace gompfs {

std::uint32_t Dictionary::lower_bound(std::string_view text) const {
    const auto numbers = std::views::iota(std::uint32_t{0}, size());
    return static_cast<std::uint32_t>(
        std::ranges::lower_bound(numbers, text, {}, [this](auto number) { return word(number); }) -
        numbers.begin());
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
