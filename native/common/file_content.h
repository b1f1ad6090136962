// The content of a file in memory, and what packing must know of it: its hash, by which files that
// are equal are found, and whether it is text.
#pragma once

#include <cstdint>
#include <memory>

#include "common/large_vector.h"
#include "common/sha256.h"
#include "common/tasks_ahead.h"

namespace gompfs {

struct FileContent {
    LargeVector<std::uint8_t> bytes;
    Sha256::Digest sha256;
    bool is_text = false;  // no NUL in its first 8 KiB

    // Sets the other members. Throws std::bad_alloc.
    void examine();
};

// The same content, which owns its space as long as it lives.
inline std::shared_ptr<FileContent> with_space(std::shared_ptr<FileContent> content,
                                               TasksAhead::Held space) {
    FileContent* const pointer = content.get();
    return {pointer, [content = std::move(content), space = std::move(space)](FileContent*) {}};
}

}  // namespace gompfs
