// Grapheme clusters: what a reader takes for one character, such as a letter with its accents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gompfs::search {

// How many bytes the first `count` grapheme clusters of a text take. Bytes that are not UTF-8 count
// as one character where ripgrep would put one in their place.
std::size_t end_of_graphemes(std::string_view text, std::uint64_t count);

}  // namespace gompfs::search
