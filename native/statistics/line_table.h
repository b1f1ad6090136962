// The lines of statistics as columns, in the memory layout of Apache Arrow.
//
// A table is flat: it has a row for each item of a line, and the first fields of the line are
// repeated in all of its rows. So columns are of two kinds. Columns of fields have a value for each
// line, and `line_of_row` says which line a row belongs to; those of items have a value per row. A
// line without items has one row, whose item is missing.
//
// Text must be UTF-8 in Arrow's strings. In a text that is not, each byte that is no part of a
// character is written as \xHH, and the text's bytes are kept beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "statistics/line_fields.h"

namespace gompfs {

// The values of a column. Which members are used depends on the type.
struct TableColumn {
    std::vector<std::int32_t> offsets{0};  // of texts: value n is texts[offsets[n], offsets[n + 1])
    std::string texts;                     // UTF-8
    std::vector<std::int32_t> odd_values;  // indexes of texts that are not UTF-8
    std::vector<std::int32_t> odd_offsets{0};  // of these, in `odd_bytes`
    std::string odd_bytes;
    std::vector<std::uint64_t> counts;
    std::vector<double> scores;
};

// Consecutive rows of a table.
struct TableBatch {
    // About the bytes of text in all columns together.
    static constexpr std::size_t kMaxBytes = std::size_t{8} << 20;

    std::size_t num_lines = 0;
    std::vector<TableColumn> fields;        // values by line
    std::vector<TableColumn> items;         // values by row: the value, the weight
    std::vector<std::int32_t> line_of_row;  // with items only
    std::vector<std::int32_t> no_items;     // rows of lines without items
};

// Returns the rows of `text`. Throws std::invalid_argument if it has not the format, or if a field
// has 128 MiB or more.
std::vector<TableBatch> table_batches(std::string_view text, const LineFormat& format);

}  // namespace gompfs
