// Parts of text and the extents of files in them, as Python passes them to functions.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/buffer_view.h"
#include "bindings/values.h"
#include "parts/parts_grammar.h"

namespace gompfs {

// The arguments of gompfs._native.grammar.read_parts_grammar. Holds the buffers as long as it
// lives.
struct HeldParts {
    std::deque<BufferView> views;
    std::vector<StoredPart> parts;
    std::vector<TextExtent> extents;
    Bytes words;
    std::uint64_t max_word_bytes;
    Tokenizer tokenizer;

    // `given` are tuples of (head, blocks, text); `columns` are those of TextExtent.
    HeldParts(nanobind::sequence given, const nanobind::tuple& columns,
              nanobind::handle word_section, std::uint64_t word_limit, WordRule word_rule,
              const nanobind::bytes& word_characters)
        : max_word_bytes(word_limit), tokenizer(word_rule, as_vector(word_characters)) {
        namespace nb = nanobind;
        const auto view = [&](nb::handle bytes) {
            return views.emplace_back(bytes, PyBUF_SIMPLE).bytes();
        };
        for (const nb::handle part : given) {
            const auto fields = nb::cast<nb::tuple>(part);
            StoredPart& added = parts.emplace_back();
            added.head = view(fields[0]);
            for (const nb::handle block : nb::cast<nb::sequence>(fields[1])) {
                added.blocks.push_back(view(block));
            }
            added.text = view(fields[2]);
        }
        const auto numbers = values_of<std::uint32_t>(columns[0]);
        const auto offsets = values_of<std::uint64_t>(columns[1]);
        const auto sizes = values_of<std::uint64_t>(columns[2]);
        const auto inos = values_of<std::uint64_t>(columns[3]);
        const auto continues = values_of<std::uint8_t>(columns[4]);
        for (std::size_t row = 0; row < numbers.size(); ++row) {
            extents.push_back({numbers[row], offsets.at(row), sizes.at(row), inos.at(row),
                               continues.at(row) != 0});
        }
        words = view(word_section);
    }
};

}  // namespace gompfs
