// Reads layouts of files from rows of the index, and keeps them; see file_layouts.h.
//
// The index is untrusted input. Every number is checked against its range, and the columns against
// each other: they must have equally many fields, files must ascend, and extents must not overlap.
#include "blocks/file_layouts.h"

#include <mutex>
#include <stdexcept>

#include "common/index_column.h"

namespace gompfs {

namespace {

constexpr std::size_t kMaxFiles = 1 << 17;
constexpr std::uint64_t kMaxIno = std::uint64_t{1} << 62;  // gompfs.model.MAX_INO

}  // namespace

bool has_holes(const LayoutView& layout) {
    std::uint64_t end = 0;
    for (const FileExtent& extent : layout.extents) {
        if (extent.file_offset != end) {
            return true;
        }
        end += extent.size;
    }
    return end != layout.size;
}

void append_extent(std::vector<FileExtent>& extents, std::size_t first, const FileExtent& extent) {
    const std::uint64_t known_end =
        extents.size() == first ? 0 : extents.back().file_offset + extents.back().size;
    if (extent.size == 0 || extent.file_offset < known_end) {
        fail_index_entry();
    }
    extents.push_back(extent);
}

FileLayouts read_layouts(const LayoutColumns& columns, std::uint64_t end) {
    FileLayouts layouts;
    IndexColumn inos(columns[0], ','), sizes(columns[1], ','), file_offsets(columns[2], ','),
        stream_offsets(columns[3], ','), extent_sizes(columns[4], ',');
    while (!inos.is_at_end()) {
        const auto ino = static_cast<std::uint64_t>(inos.next_number(0, kMaxIndexInteger));
        const auto size = static_cast<std::uint64_t>(sizes.next_number(0, kMaxIndexInteger));
        const std::int64_t file_offset = file_offsets.next_number(-1, kMaxIndexInteger);
        const std::int64_t stream_offset = stream_offsets.next_number(-1, kMaxIndexInteger);
        const std::int64_t extent_size = extent_sizes.next_number(-1, kMaxIndexInteger);
        const bool is_new = layouts.empty() || layouts.back().first != ino;
        if (is_new) {
            if (!layouts.empty() && ino < layouts.back().first) {
                fail_index_entry();
            }
            layouts.push_back({ino, {size, {}}});
        }
        if (extent_size == -1 && file_offset == -1 && stream_offset == -1 && is_new) {
            continue;
        }
        if (file_offset < 0 || stream_offset < 0 || extent_size < 0) {
            fail_index_entry();
        }
        append_extent(
            layouts.back().second.extents, 0,
            {static_cast<std::uint64_t>(file_offset), static_cast<std::uint64_t>(stream_offset),
             static_cast<std::uint64_t>(extent_size)});
    }
    for (const IndexColumn& column : {sizes, file_offsets, stream_offsets, extent_sizes}) {
        if (!column.is_at_end()) {
            fail_index_entry();
        }
    }
    std::erase_if(layouts, [&](const auto& layout) { return layout.first >= end; });
    return layouts;
}

void LayoutTable::add(FileLayouts layouts) {
    const std::unique_lock lock(mutex_);
    if (files_.size() + layouts.size() > kMaxFiles) {
        files_.clear();
    }
    for (auto& [ino, layout] : layouts) {
        files_[ino] = std::make_shared<const FileLayout>(std::move(layout));
    }
}

// If the index is damaged at one of the files after `ino`, `ino` is read alone.
std::shared_ptr<const FileLayout> LayoutTable::find_in_index(std::uint64_t ino) {
    if (ino >= kMaxIno) {
        return nullptr;
    }
    FileLayouts layouts;
    try {
        layouts = find_(ino, false);
    } catch (const std::invalid_argument&) {
        layouts = find_(ino, true);
    }
    std::shared_ptr<const FileLayout> file;
    if (!layouts.empty() && layouts.front().first == ino) {
        file = std::make_shared<const FileLayout>(layouts.front().second);
    }
    add(std::move(layouts));
    return file;
}

}  // namespace gompfs
