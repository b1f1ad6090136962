// The content of a file in memory, and its hash, by which packing finds files that are equal.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "common/large_vector.h"
#include "common/tasks_ahead.h"

namespace gompfs {

struct FileContent {
    LargeVector<std::uint8_t> bytes;
    std::array<std::uint8_t, 32> sha256;

    // Throws std::bad_alloc.
    void set_sha256();
};

// The same content, which holds its room as long as it lives.
inline std::shared_ptr<FileContent> with_room(std::shared_ptr<FileContent> content,
                                              TasksAhead::Taken room) {
    FileContent* const pointer = content.get();
    return {pointer, [content = std::move(content), room = std::move(room)](FileContent*) {}};
}

}  // namespace gompfs
