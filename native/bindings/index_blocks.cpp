// Columns of facts about blocks that follow from other columns of an index, and rows of columns
// that SQLite has joined, in gompfs._native.index.
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/types.h"
#include "bindings/values.h"
#include "common/index_column.h"
#include "index/block_columns.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

template <typename Value>
nb::bytes column_of(const std::vector<Value>& values) {
    return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

nb::bytes offsets(std::uint64_t archive_offset, const py::Buffer& compressed_sizes,
                  std::uint64_t data_end) {
    return column_of(
        consecutive_offsets(archive_offset, values_of<std::uint32_t>(compressed_sizes), data_end));
}

nb::bytes sizes(const py::Buffer& part_sizes, std::uint32_t block_size, std::uint64_t num_blocks) {
    return column_of(
        uncompressed_sizes(values_of<std::uint64_t>(part_sizes), block_size, num_blocks));
}

nb::bytes rows_of(const py::Sequence<py::Buffer>& columns) {
    std::vector<std::int64_t> rows;
    const std::size_t num_columns = nb::len(columns);
    for (std::size_t number = 0; number < num_columns; ++number) {
        const BufferView view(columns[number], PyBUF_SIMPLE);
        IndexColumn column(
            {reinterpret_cast<const char*>(view.bytes().data()), view.bytes().size()}, ',');
        std::size_t at = number;
        for (; !column.is_at_end(); at += num_columns) {
            if (number == 0) {
                rows.resize(rows.size() + num_columns);
            } else if (at >= rows.size()) {
                fail_index_entry();
            }
            rows[at] =
                column.next_number(std::numeric_limits<std::int64_t>::min(), kMaxIndexInteger);
        }
        if (at != rows.size() + number) {
            fail_index_entry();
        }
    }
    return column_of(rows);
}

}  // namespace

void bind_index_blocks(nb::module_& index) {
    index.def(
        "consecutive_offsets", &offsets, "archive_offset"_a, "compressed_sizes"_a, "data_end"_a,
        "Returns the archive_offset (u64) of blocks with these sizes (u32), of which the first is "
        "at `archive_offset`.\n\n"
        "Each of the others begins at the next multiple of 16. Raises ValueError if "
        "`archive_offset` is not a multiple of 16, or if a block ends after `data_end`.");
    index.def("uncompressed_sizes", &sizes, "part_sizes"_a, "block_size"_a, "num_blocks"_a,
              "Returns the uncompressed size (u32) of each block of parts with these sizes "
              "(u64).\n\n"
              "Raises ValueError if a part is empty, or if the parts do not have `num_blocks` "
              "blocks.");
    index.def("integer_rows", &rows_of, "columns"_a,
              "Returns rows of integers (i64) for columns, each a text of integers with commas "
              "between them.\n\n"
              "Raises ValueError if a field is no integer of 64 bits, or if the columns have "
              "different numbers of fields.");
}

}  // namespace gompfs
