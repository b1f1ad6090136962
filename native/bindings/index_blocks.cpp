// Columns of facts about blocks that follow from other columns of an index, in
// gompfs._native.index.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/values.h"
#include "index/block_columns.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

template <typename Value>
nb::bytes column_of(const std::vector<Value>& values) {
    return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

nb::bytes offsets(std::uint64_t archive_offset, nb::handle compressed_sizes,
                  std::uint64_t data_end) {
    return column_of(
        consecutive_offsets(archive_offset, values_of<std::uint32_t>(compressed_sizes), data_end));
}

nb::bytes sizes(nb::handle part_sizes, std::uint32_t block_size, std::uint64_t num_blocks) {
    return column_of(
        uncompressed_sizes(values_of<std::uint64_t>(part_sizes), block_size, num_blocks));
}

}  // namespace

void bind_index_blocks(nb::module_& index) {
    index.def("consecutive_offsets", &offsets, "archive_offset"_a, "compressed_sizes"_a,
              "data_end"_a);
    index.def("uncompressed_sizes", &sizes, "part_sizes"_a, "block_size"_a, "num_blocks"_a);
}

}  // namespace gompfs
