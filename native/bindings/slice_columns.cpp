// The Python class gompfs._native.blocks.SliceColumns. The work is done in native/blocks.
#include "blocks/slice_columns.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/bound_plan.h"
#include "bindings/buffer_view.h"

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

    BoundColumns(const BoundPlan& bound, Array<std::int64_t> indexes, nb::handle facts,
                 Array<std::uint8_t> head_statuses, Array<std::uint64_t> heads,
                 Array<std::uint64_t> payloads)
        : indexes(std::move(indexes)),
          facts(facts, PyBUF_SIMPLE),
          head_statuses(std::move(head_statuses)),
          heads(std::move(heads)),
          payloads(std::move(payloads)),
          columns(bound.plan, blocks()) {}

    SliceBlocks blocks() const {
        const std::span<const std::uint8_t> bytes = facts.bytes();
        return {.indexes = as_span(indexes),
                .facts = {reinterpret_cast<const StagedBlock*>(bytes.data()),
                          bytes.size() / sizeof(StagedBlock)},
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

}  // namespace

// These functions are short: they keep the GIL, which other threads might hold for milliseconds.
void bind_slice_columns(nb::module_& blocks) {
    nb::class_<BoundColumns>(blocks, "SliceColumns")
        .def(nb::init<const BoundPlan&, Array<std::int64_t>, nb::handle, Array<std::uint8_t>,
                      Array<std::uint64_t>, Array<std::uint64_t>>(),
             "plan"_a, "indexes"_a, "facts"_a, "head_statuses"_a, "heads"_a, "payloads"_a,
             nb::keep_alive<1, 2>())
        .def_prop_ro("bounds", &bounds)
        .def_prop_ro("size", &property<&SliceColumns::size>)
        .def_prop_ro("content_size", &property<&SliceColumns::content_size>)
        .def_prop_ro("num_decoded", &property<&SliceColumns::num_decoded>)
        .def_prop_ro("num_pieces", &property<&SliceColumns::num_pieces>)
        .def_prop_ro("has_checksums", &property<&SliceColumns::has_checksums>)
        .def_prop_ro("indexes",
                     [](const BoundColumns& bound) { return to_array(bound.columns.indexes()); })
        .def(
            "write",
            [](const BoundColumns& bound, nb::handle out, std::uint64_t content) {
                bound.columns.write(BufferView(out, PyBUF_WRITABLE).mutable_bytes(), content);
            },
            "out"_a, "content"_a);
}

}  // namespace gompfs
