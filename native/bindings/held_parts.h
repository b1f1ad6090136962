// Parts of text and the extents of files in them, as Python passes them to functions.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/variant.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "bindings/archive_bytes.h"
#include "bindings/arrays.h"
#include "bindings/buffer_view.h"
#include "bindings/types.h"
#include "bindings/values.h"
#include "common/bytes.h"
#include "text/segment_grammar.h"

namespace gompfs {

// The docstring of read_segment_grammar says what these are.
using StoredText =
    py::Tuple<ArchiveBytes, std::uint64_t, py::Buffer, py::Buffer, py::Buffer, py::Buffer,
              py::Buffer, py::Sequence<py::Buffer>, py::Buffer, py::Buffer>;

// The arguments of gompfs._native.text.read_segment_grammar. Holds the buffers as long as it
// lives.
class HeldParts {
  public:
    HeldParts(const StoredText& stored, const py::Buffer& rows, const py::Buffer& word_section,
              std::uint64_t word_limit, WordRule word_rule, const nanobind::bytes& word_characters)
        : parts(parts_of(stored)),
          extents(find_text_extents(values_of<std::uint64_t>(rows), ranges_of(stored))),
          words(view(word_section)),
          max_word_bytes(word_limit),
          tokenizer(word_rule, as_vector(word_characters)) {}

  private:
    std::deque<BufferView> views_;  // must be initialised before `parts`

  public:
    const StoredParts parts;
    const std::vector<TextExtent> extents;
    const Bytes words;
    const std::uint64_t max_word_bytes;
    const Tokenizer tokenizer;

  private:
    Bytes view(nanobind::handle buffer) {
        return views_.emplace_back(buffer, PyBUF_SIMPLE).bytes();
    }

    static PartRanges ranges_of(const StoredText& stored) {
        PartRanges ranges{values_of<std::uint64_t>(stored[2]), values_of<std::uint64_t>(stored[3]),
                          0, 0};
        const std::vector<std::uint64_t> first_blocks = values_of<std::uint64_t>(stored[6]);
        if (!ranges.begins.empty() && !first_blocks.empty()) {
            const auto block_size = nanobind::cast<std::uint64_t>(stored[1]);
            const std::size_t num_blocks = values_of<std::uint64_t>(stored[8]).size();
            ranges.segment_begin = ranges.begins.front() - first_blocks.front() * block_size;
            ranges.segment_end = ranges.segment_begin + num_blocks * block_size;
        }
        return ranges;
    }

    StoredParts parts_of(const StoredText& stored) {
        namespace nb = nanobind;
        auto fetch = make_fetch(nb::cast<ArchiveBytes>(stored[0]));
        StoredParts::Columns columns;
        columns.sizes = values_of<std::uint64_t>(stored[3]);
        columns.head_offsets = values_of<std::uint64_t>(stored[4]);
        columns.head_sizes = values_of<std::uint32_t>(stored[5]);
        columns.first_blocks = values_of<std::uint64_t>(stored[6]);
        for (const nb::handle text : nb::cast<nb::sequence>(stored[7])) {
            columns.texts.push_back(view(text));
        }
        columns.block_offsets = values_of<std::uint64_t>(stored[8]);
        columns.block_sizes = values_of<std::uint32_t>(stored[9]);
        return {std::move(columns), nb::cast<std::uint64_t>(stored[1]), std::move(fetch)};
    }
};

}  // namespace gompfs
