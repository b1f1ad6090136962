// The Python classes SliceColumns and WholeBlocks of gompfs._native.blocks. The work is done in
// native/blocks.
#include "blocks/slice_columns.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/bound_plan.h"
#include "bindings/buffer_view.h"
#include "bindings/types.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

// Columns with the arrays of Python that they read.
struct BoundColumns {
    Array<std::int64_t> indexes;
    BufferView facts;
    Array<std::uint8_t> head_statuses;
    Array<std::uint64_t> heads, payloads;
    SliceColumns columns;

    BoundColumns(const BlockPieces& pieces, Array<std::int64_t> indexes, const py::Buffer& facts,
                 Array<std::uint8_t> head_statuses, Array<std::uint64_t> heads,
                 Array<std::uint64_t> payloads, bool in_place)
        : indexes(std::move(indexes)),
          facts(facts, PyBUF_SIMPLE),
          head_statuses(std::move(head_statuses)),
          heads(std::move(heads)),
          payloads(std::move(payloads)),
          columns(pieces, blocks(), in_place) {}

    SliceBlocks blocks() const {
        const std::span<const std::uint8_t> bytes = facts.bytes();
        return {.indexes = as_span(indexes),
                .facts = {reinterpret_cast<const BlockFacts*>(bytes.data()),
                          bytes.size() / sizeof(BlockFacts)},
                .head_statuses = as_span(head_statuses),
                .heads = as_span(heads),
                .payloads = as_span(payloads)};
    }
};

std::vector<std::pair<std::size_t, std::size_t>> bounds(const BoundColumns& bound) {
    std::vector<std::pair<std::size_t, std::size_t>> bounds;
    for (std::size_t column = 0; column < SliceColumns::num_columns; ++column) {
        bounds.push_back(bound.columns.bounds(column));
    }
    return bounds;
}

template <auto kProperty>
auto property(const BoundColumns& bound) {
    return (bound.columns.*kProperty)();
}

// Lays out the columns of a plan of either kind.
void make_columns(BoundColumns* memory, std::variant<const BoundPlan*, const WholeBlocks*> plan,
                  Array<std::int64_t> indexes, const py::Buffer& facts,
                  Array<std::uint8_t> head_statuses, Array<std::uint64_t> heads,
                  Array<std::uint64_t> payloads, bool in_place) {
    const BoundPlan* const* const ranges = std::get_if<const BoundPlan*>(&plan);
    const BlockPieces pieces =
        ranges != nullptr ? (*ranges)->plan.pieces() : std::get<const WholeBlocks*>(plan)->pieces();
    new (memory) BoundColumns(pieces, std::move(indexes), facts, std::move(head_statuses),
                              std::move(heads), std::move(payloads), in_place);
}

void make_whole_blocks(WholeBlocks* memory, const Array<std::uint32_t>& sizes,
                       const Array<std::uint64_t>& targets) {
    const std::span all_sizes = as_span(sizes);
    const std::span all_targets = as_span(targets);
    new (memory)
        WholeBlocks({all_sizes.begin(), all_sizes.end()}, {all_targets.begin(), all_targets.end()});
}

}  // namespace

// These functions are short: they keep the GIL, which other threads might hold for milliseconds.
void bind_slice_columns(nb::module_& blocks) {
    nb::class_<WholeBlocks>(blocks, "WholeBlocks",
                            "A plan of blocks that are one piece each, by their order.")
        .def("__init__", &make_whole_blocks, "sizes"_a, "targets"_a,
             "Block i has `sizes[i]` bytes, which go to the offset `targets[i]` in the output.");
    nb::class_<BoundColumns>(blocks, "SliceColumns",
                             "The arrays that kernels need to read some blocks of a plan: see "
                             "native/blocks/slice_columns.h.\n\n"
                             "Blocks that the device decodes come first, grouped by codec; then "
                             "stored and damaged ones.")
        .def("__init__", &make_columns, "plan"_a, "indexes"_a, "facts"_a, "head_statuses"_a,
             "heads"_a, "payloads"_a, "in_place"_a, nb::keep_alive<1, 2>(),
             "Lays out the columns for the blocks of `plan` with these indexes.\n\n"
             "Each block has a record (gompfs.codec.headers.FACTS), a BlockStatus and the device "
             "address of what it needs to be decoded, and the device address of its payload. With "
             "`in_place`, blocks are decoded to the targets of their pieces. Raises ValueError if "
             "there is no such block, or if it cannot be decoded in place.")
        .def_prop_ro("bounds", &bounds,
                     "Where each column begins and ends in the memory that `write` fills.\n\n"
                     "The columns are tasks of decoded blocks, five rows of u64; of each block, "
                     "the address of its content (u64), BlockStatus (u8), size (u32) and checksum "
                     "(u64); of each piece, the block, begin and size (u32), and the offset in the "
                     "output (u64).")
        .def_prop_ro("size", &property<&SliceColumns::size>, "The number of bytes of all columns.")
        .def_prop_ro("content_size", &property<&SliceColumns::content_size>,
                     "The number of bytes of memory for the contents that the device decodes; 0 if "
                     "it decodes them in place.")
        .def_prop_ro("num_decoded", &property<&SliceColumns::num_decoded>,
                     "How many blocks of each codec the device decodes, by the codec's number.")
        .def_prop_ro("num_pieces", &property<&SliceColumns::num_pieces>)
        .def_prop_ro("has_checksums", &property<&SliceColumns::has_checksums>,
                     "Whether the checksum of any content is known.")
        .def_prop_ro(
            "indexes", [](const BoundColumns& bound) { return to_array(bound.columns.indexes()); },
            "The indexes of the blocks in the plan, in the order of the columns.")
        .def(
            "write",
            [](const BoundColumns& bound, const py::Buffer& out, std::uint64_t content,
               std::uint64_t base) {
                bound.columns.write(BufferView(out, PyBUF_WRITABLE).mutable_bytes(), content, base);
            },
            "out"_a, "content"_a, "base"_a,
            "Writes the columns to `out`, of `size` bytes. Contents will be decoded to the device "
            "address `content`.\n\n"
            "The memory for the output begins at the target `base`; it is at `content` if blocks "
            "are decoded in place.");
}

}  // namespace gompfs
