// Reads gompfs.model.Inode values.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

#include "fuse/attributes.h"

namespace gompfs {

// Reads the fields of a gompfs.model.Inode.
inline InodeFields inode_of(nanobind::handle inode) {
    const auto field = [&](std::size_t index) {
        return nanobind::cast<std::int64_t>(inode[index]);
    };
    InodeFields fields{};
    fields.ino = static_cast<std::uint64_t>(field(0));
    fields.mode = static_cast<std::uint32_t>(field(1));
    fields.uid = static_cast<std::uint32_t>(field(2));
    fields.gid = static_cast<std::uint32_t>(field(3));
    fields.size = static_cast<std::uint64_t>(field(4));
    fields.mtime_ns = field(5);
    fields.nlink = static_cast<std::uint32_t>(field(6));
    fields.rdev = static_cast<std::uint64_t>(field(7));
    return fields;
}

}  // namespace gompfs
