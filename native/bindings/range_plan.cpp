// The Python classes RangePlan and BlockStaging of gompfs._native.blocks. The work is done in
// native/blocks.
#include "blocks/range_plan.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/block_views.h"
#include "bindings/bound_plan.h"
#include "bindings/buffer_view.h"
#include "bindings/types.h"
#include "blocks/staged_blocks.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

std::optional<ReadFailure> failure_or_none(const ReadFailure& failure) {
    return failure ? std::make_optional(failure) : std::nullopt;
}

std::vector<FileRange> ranges_of(const Array<std::uint64_t>& inos,
                                 const Array<std::uint64_t>& begins,
                                 const Array<std::uint64_t>& ends) {
    if (begins.size() != inos.size() || ends.size() != inos.size()) {
        throw nb::value_error("each range needs an inode number, a begin and an end");
    }
    std::vector<FileRange> ranges(inos.size());
    for (std::size_t index = 0; index < ranges.size(); ++index) {
        ranges[index] = {inos.data()[index], begins.data()[index], ends.data()[index]};
    }
    return ranges;
}

void make_plan(BoundPlan* memory, BlockReader& reader, const Array<std::uint64_t>& inos,
               const Array<std::uint64_t>& begins, const Array<std::uint64_t>& ends) {
    const std::vector<FileRange> ranges = ranges_of(inos, begins, ends);
    const nb::gil_scoped_release release;
    new (memory) BoundPlan(reader, ranges);
}

std::optional<ReadFailure> locate(BoundPlan& bound, std::uint64_t memory) {
    const nb::gil_scoped_release release;
    return failure_or_none(bound.plan.locate(memory));
}

NewArray<std::uint64_t> holes(const BoundPlan& bound) {
    std::vector<std::uint64_t> columns;
    for (const OutputRange& hole : bound.plan.holes()) {
        columns.push_back(hole.target);
    }
    for (const OutputRange& hole : bound.plan.holes()) {
        columns.push_back(hole.size);
    }
    return to_array(std::move(columns));
}

std::optional<ReadFailure> decode(const BoundPlan& bound, BlockReader& reader,
                                  const py::Buffer& out, unsigned num_threads, bool use_source) {
    const BufferView view(out, PyBUF_WRITABLE);
    const nb::gil_scoped_release release;
    return failure_or_none(
        reader.decode_ranges(bound.plan, view.mutable_bytes(), num_threads, use_source));
}

// A BlockStaging with the memory that it reads and fills.
struct BoundStaging {
    BufferView out;
    BlockViews memory;
    BlockStaging staging;

    BoundStaging(Descriptor file, const py::Sequence<py::Buffer>& memory,
                 std::vector<WantedBlock> blocks, const py::Buffer& out, unsigned num_threads)
        : out(out, PyBUF_WRITABLE),
          memory(memory),
          staging(std::move(file), this->memory.blocks(), std::move(blocks),
                  this->out.mutable_bytes(), num_threads) {}
};

// `source` is a file descriptor, or has the bytes of each block.
void begin_staging(BoundStaging* memory, const std::variant<int, py::Sequence<py::Buffer>>& source,
                   const Array<std::uint64_t>& archive_offsets,
                   const Array<std::uint32_t>& compressed_sizes,
                   const Array<std::uint32_t>& uncompressed_sizes,
                   const Array<std::uint8_t>& supplements, const Array<std::uint64_t>& targets,
                   const py::Buffer& out, unsigned num_threads) {
    const int* const descriptor = std::get_if<int>(&source);
    Descriptor file(descriptor != nullptr ? *descriptor : -1);
    std::vector<WantedBlock> wanted(archive_offsets.size());
    for (const std::size_t size :
         {compressed_sizes.size(), uncompressed_sizes.size(), supplements.size(), targets.size()}) {
        if (size != wanted.size()) {
            throw nb::value_error("each block needs a value in each column");
        }
    }
    for (std::size_t index = 0; index < wanted.size(); ++index) {
        wanted[index] = {archive_offsets.data()[index], compressed_sizes.data()[index],
                         uncompressed_sizes.data()[index],
                         static_cast<Supplement>(supplements.data()[index]), targets.data()[index]};
    }
    const auto in_memory = descriptor == nullptr ? std::get<py::Sequence<py::Buffer>>(source)
                                                 : nb::borrow<py::Sequence<py::Buffer>>(nb::list());
    new (memory) BoundStaging(std::move(file), in_memory, std::move(wanted), out, num_threads);
}

nb::bytes wait(BoundStaging& bound) {
    std::span<const BlockFacts> staged;
    {
        const nb::gil_scoped_release release;
        staged = bound.staging.wait();
    }
    return nb::bytes(staged.data(), staged.size_bytes());
}

// A column of a plan as an array that keeps the plan alive.
template <auto kColumn>
auto column(const BoundPlan& bound) {
    return to_view(bound, (bound.plan.*kColumn)());
}

}  // namespace

void bind_range_plan(nb::module_& blocks) {
    nb::class_<BoundPlan>(
        blocks, "RangePlan",
        "Where the bytes of many ranges of files are, see native/blocks/range_plan.h.")
        .def("__init__", &make_plan, "reader"_a, "inos"_a, "begins"_a, "ends"_a,
             "Finds files by inode number. Bytes of ranges that are after the end of a file do not "
             "exist.\n\n"
             "Raises what the function of `find_layouts_with` raises, and ValueError if the output "
             "would be too large.")
        .def("locate", &locate, "memory"_a,
             "Finds the pieces. They take memory in proportion to the output: allocate it "
             "first.\n\n"
             "Raises MemoryError if they need more than `memory` bytes. Then it may be called "
             "again.")
        .def_prop_ro(
            "failure", [](const BoundPlan& bound) { return failure_or_none(bound.failure); },
            "Why the plan cannot be used: a file cannot be found.")
        .def_prop_ro(
            "failed_range", [](const BoundPlan& bound) { return bound.plan.failed_range(); },
            "The range of `failure`, or of the failure that `locate` has returned.")
        .def_prop_ro("offsets", &column<&RangePlan::offsets>,
                     "The offset of each range in the output, and the size of the output.")
        .def_prop_ro("blocks", &column<&RangePlan::blocks>,
                     "The different blocks that have bytes of the ranges, ascending.")
        .def_prop_ro("first_pieces", &column<&RangePlan::first_pieces>,
                     "For each block, the number of its first piece; then the number of pieces.")
        .def_prop_ro("begins", &column<&RangePlan::begins>,
                     "For each piece, its offset in its block.")
        .def_prop_ro("sizes", &column<&RangePlan::sizes>, "For each piece, its size in bytes.")
        .def_prop_ro("targets", &column<&RangePlan::targets>,
                     "For each piece, its offset in the output.")
        .def_prop_ro("holes", &holes, "The offsets of the holes in the output, then their sizes.")
        .def(
            "range_of",
            [](const BoundPlan& bound, std::uint64_t block) { return bound.plan.range_of(block); },
            "block"_a, "Returns the first range that has bytes of a block.")
        .def(
            "overrun_block",
            [](const BoundPlan& bound, const Array<std::uint32_t>& sizes) {
                return bound.plan.overrun_block(as_span(sizes));
            },
            "uncompressed_sizes"_a,
            "Returns the first block with a piece that ends after the end of the block, or "
            "None.\n\n"
            "Then an extent crosses the end of a segment. `uncompressed_sizes` has a value for "
            "each block of the stream.")
        .def("decode", &decode, "reader"_a, "out"_a, "num_threads"_a, "use_source"_a,
             "Decodes all ranges into `out`, each block once, without using the cache. Raises "
             "OSError.\n\n"
             "`use_source` as in `BlockReader.decode_into`. If it fails, `out` has arbitrary "
             "bytes.");
    nb::class_<BoundStaging>(blocks, "BlockStaging",
                             "Compressed blocks that threads are reading, see "
                             "native/blocks/staged_blocks.h.")
        .def("__init__", &begin_staging, "source"_a, "archive_offsets"_a, "compressed_sizes"_a,
             "uncompressed_sizes"_a, "supplements"_a, "targets"_a, "out"_a, "num_threads"_a,
             "Begins to read blocks to their targets in `out`, and to check them against their "
             "checksums.\n\n"
             "`source` is the descriptor of a file, which is closed once it is no longer needed, "
             "or has the bytes of each block. `supplements` says what each block needs: nothing "
             "(0), the symbols of its part (1) or the dictionary (2).")
        .def("wait", &wait,
             "Waits until all blocks were read. Returns a record of gompfs.codec.headers.FACTS for "
             "each. Raises OSError.");
}

}  // namespace gompfs
