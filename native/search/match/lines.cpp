// Counts lines; see lines.h.
#include "search/match/lines.h"

#include <algorithm>
#include <cstdint>

namespace gompfs::search {

std::size_t count_newlines(std::string_view text) {
    std::size_t count = 0;
    // The compiler counts 16 or more bytes at a time, in bytes that do not overflow.
    while (!text.empty()) {
        const std::string_view chunk = text.substr(0, 4080);
        std::uint8_t counts[16] = {};
        std::size_t index = 0;
        for (; index + 16 <= chunk.size(); index += 16) {
            for (std::size_t lane = 0; lane < 16; ++lane) {
                counts[lane] =
                    static_cast<std::uint8_t>(counts[lane] + (chunk[index + lane] == '\n'));
            }
        }
        for (const std::uint8_t each : counts) {
            count += each;
        }
        count += static_cast<std::size_t>(
            std::count(chunk.begin() + static_cast<std::ptrdiff_t>(index), chunk.end(), '\n'));
        text.remove_prefix(chunk.size());
    }
    return count;
}

}  // namespace gompfs::search
