// How frequent bytes are in source code and prose.
#pragma once

#include <cstddef>
#include <string_view>

namespace gompfs::search {

// Returns a higher number for a more frequent byte, and 0 for bytes that are rare.
inline std::size_t frequency_of(char byte) {
    // From the most frequent on.
    constexpr std::string_view kFrequent =
        " etaoinsrlcdupm_f\tg,h0b\n;)(vS.E*-RTx=AyCI>/"
        "NDkO1LP2\"wFMU83BG46V&HX:W5q{}zY9K7#<jQ+|J[]!%Z'@?~$\\^`";
    const std::size_t rank = kFrequent.find(byte);
    return rank == std::string_view::npos ? 0 : kFrequent.size() - rank;
}

}  // namespace gompfs::search
