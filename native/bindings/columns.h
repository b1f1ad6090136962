// Columns of index rows, as gompfs.model.PackedRows holds them: one bytes object for each column.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string_view>
#include <vector>

namespace gompfs {

using Columns = std::vector<nanobind::bytes>;

inline std::string_view text_of(const Columns& columns, std::size_t index) {
    return {columns.at(index).c_str(), columns.at(index).size()};
}

}  // namespace gompfs
