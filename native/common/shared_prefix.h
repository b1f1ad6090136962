// The prefix that two words share, for lists that store it once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace gompfs {

// The number of bytes at the beginning that are equal, at most `limit`.
inline std::size_t shared_prefix(std::string_view left, std::string_view right,
                                 std::size_t limit = std::string_view::npos) {
    const std::size_t size = std::min({left.size(), right.size(), limit});
    const auto end = left.begin() + static_cast<std::ptrdiff_t>(size);
    return static_cast<std::size_t>(std::mismatch(left.begin(), end, right.begin()).first -
                                    left.begin());
}

}  // namespace gompfs
