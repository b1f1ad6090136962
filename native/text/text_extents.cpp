// Finds the extents of parts; see text_extents.h.
#include "text/text_extents.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>

namespace gompfs {

void fail_extent() { throw std::invalid_argument("an extent of a file is not a piece of a part"); }

std::vector<TextExtent> find_text_extents(std::span<const std::uint64_t> rows,
                                          const PartRanges& parts) {
    std::vector<TextExtent> extents;
    std::size_t first_of_file = 0;
    bool is_composed = false;  // whether the file has extents in other segments
    for (std::uint64_t last_ino = 0; rows.size() >= 4; rows = rows.subspan(4)) {
        const std::uint64_t ino = rows[0], file_offset = rows[1], stream_offset = rows[2];
        if (ino != last_ino) {
            first_of_file = extents.size();
            is_composed = false;
            last_ino = ino;
        }
        if (stream_offset < parts.segment_begin || stream_offset >= parts.segment_end) {
            is_composed = true;
            extents.resize(first_of_file);
        }
        const auto next = std::upper_bound(parts.begins.begin(), parts.begins.end(), stream_offset);
        if (is_composed || next == parts.begins.begin()) {
            continue;
        }
        const auto part = static_cast<std::uint32_t>(next - parts.begins.begin() - 1);
        const std::uint64_t offset = stream_offset - parts.begins[part];
        if (offset < parts.sizes[part]) {
            extents.push_back({part, offset, rows[3], ino, file_offset != 0});
        }
    }
    std::sort(extents.begin(), extents.end(), [](const TextExtent& left, const TextExtent& right) {
        return std::tie(left.part, left.offset, left.ino) <
               std::tie(right.part, right.offset, right.ino);
    });
    return extents;
}

std::vector<std::span<const TextExtent>> split_by_part(std::span<const TextExtent> extents,
                                                       std::size_t num_parts) {
    std::vector<std::span<const TextExtent>> of_part;
    for (std::size_t part = 0; part < num_parts; ++part) {
        const auto end = std::find_if(extents.begin(), extents.end(),
                                      [&](const TextExtent& each) { return each.part != part; });
        of_part.emplace_back(extents.begin(), end);
        extents = extents.subspan(of_part.back().size());
    }
    return of_part;
}

}  // namespace gompfs
