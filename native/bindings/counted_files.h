// The argument `inos` of counting functions: the inode numbers of the files to count.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>

#include "bindings/arrays.h"
#include "statistics/counted_files.h"

namespace gompfs {

// None stands for all files.
using Inos = std::optional<Array<std::uint64_t>>;

inline CountedFiles counted_files(const Inos& inos) {
    return inos ? CountedFiles({inos->data(), inos->data() + inos->size()}) : CountedFiles();
}

}  // namespace gompfs
