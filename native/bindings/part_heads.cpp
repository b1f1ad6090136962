// The classes gompfs._native.parts.PartHeads and SymbolTable.
#include "parts/part_heads.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/archive_bytes.h"
#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/shared_symbols.h"
#include "bindings/values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using SectionColumns = std::tuple<nb::object, nb::object>;
using WordColumns = std::tuple<nb::object, nb::object, nb::object>;
using Columns = std::tuple<nb::object, nb::object, nb::object, nb::object, WordColumns>;

SectionBlocks section_of(const SectionColumns& columns) {
    const auto& [offsets, sizes] = columns;
    SectionBlocks blocks{values_of<std::uint64_t>(offsets), values_of<std::uint32_t>(sizes)};
    if (blocks.compressed_sizes.size() != blocks.archive_offsets.size()) {
        throw nb::value_error("the columns of a section do not have equally many values");
    }
    return blocks;
}

SectionBlocks words_section_of(const WordColumns& columns) {
    const auto& [offsets, sizes, uncompressed_sizes] = columns;
    SectionBlocks blocks = section_of({offsets, sizes});
    blocks.uncompressed_sizes = values_of<std::uint32_t>(uncompressed_sizes);
    if (blocks.uncompressed_sizes.size() != blocks.archive_offsets.size()) {
        throw nb::value_error("the columns of a section do not have equally many values");
    }
    return blocks;
}

void init(PartHeads* self, const std::vector<Columns>& segments, const ArchiveBytes& file,
          std::uint64_t capacity, unsigned num_threads,
          const std::optional<SectionColumns>& dictionary) {
    std::vector<SegmentHeads> heads;
    for (const auto& [first_blocks, offsets, sizes, uses_dictionary, words] : segments) {
        heads.push_back({values_of<std::uint64_t>(first_blocks), values_of<std::uint64_t>(offsets),
                         values_of<std::uint32_t>(sizes), values_of<std::uint8_t>(uses_dictionary),
                         words_section_of(words)});
        const SegmentHeads& added = heads.back();
        if (added.first_blocks.size() != added.head_offsets.size() + 1 ||
            added.head_sizes.size() != added.head_offsets.size() ||
            added.uses_dictionary.size() != added.head_offsets.size()) {
            throw nb::value_error("the columns of a segment do not have equally many values");
        }
    }
    new (self) PartHeads(std::move(heads), dictionary ? section_of(*dictionary) : SectionBlocks(),
                         make_fetch(file), capacity, num_threads);
}

// The symbols of the parts of blocks, None for a part without a head or with a damaged one, and the
// status of each head.
nb::tuple open_all(PartHeads& heads, const std::vector<std::uint64_t>& blocks) {
    std::vector<PartHeads::Opened> opened;
    {
        const nb::gil_scoped_release release;
        opened = heads.open_all(blocks);
    }
    nb::list symbols;
    std::vector<BlockStatus> statuses;
    for (const PartHeads::Opened& each : opened) {
        symbols.append(each.symbols ? nb::cast(SharedSymbols{each.symbols}) : nb::none());
        statuses.push_back(each.status);
    }
    return nb::make_tuple(symbols, to_bytes(statuses));
}

// The global words of a segment and their starts, and likewise the separators, as views that keep
// the heads alive.
nb::tuple words_of(PartHeads& heads, std::size_t segment) {
    const WordSection* words = nullptr;
    {
        const nb::gil_scoped_release release;
        words = &heads.words(segment);
    }
    return nb::make_tuple(
        to_view(heads, words->words().starts()), to_view(heads, words->words().bytes()),
        to_view(heads, words->separators().starts()), to_view(heads, words->separators().bytes()));
}

// Views of a table, which keep it alive. Expansions are as 64-bit numbers.
nb::object expansions_of(const SharedSymbols& shared) {
    static_assert(sizeof(Expansion) == sizeof(std::uint64_t));
    const std::vector<Expansion>& expansions = shared.table->expansions;
    return to_view(shared, std::span(reinterpret_cast<const std::uint64_t*>(expansions.data()),
                                     expansions.size()));
}

nb::object pool_of(const SharedSymbols& shared) {
    const SymbolTable& table = *shared.table;
    const std::size_t size = table.is_dictionary() ? table.dictionary_size
                                                   : table.pool.size() - SymbolTable::kPoolMargin;
    return to_view(shared, std::span(table.pool.data(), size));
}

nb::object code_of(const SharedSymbols& shared) {
    return to_view(shared, shared.table->code.entries);
}

void load_words(PartHeads& heads) {
    const nb::gil_scoped_release release;
    for (std::size_t segment = 0; segment < heads.segments().size(); ++segment) {
        heads.words(segment);
    }
}

}  // namespace

void bind_part_heads(nb::module_& parts) {
    nb::class_<SharedSymbols>(parts, "SymbolTable")
        .def("__len__", [](const SharedSymbols& shared) { return shared.table->expansions.size(); })
        .def_prop_ro("is_dictionary",
                     [](const SharedSymbols& shared) { return shared.table->is_dictionary(); })
        .def_prop_ro("number", [](const SharedSymbols& shared) { return shared.table->number; })
        .def_prop_ro("expansions", &expansions_of)
        .def_prop_ro("pool", &pool_of)
        .def_prop_ro("code", &code_of);
    nb::class_<PartHeads>(parts, "PartHeads")
        .def("__init__", &init, "segments"_a, "file"_a, "capacity"_a, "num_threads"_a,
             "dictionary"_a = nb::none())
        .def("open", &open_all, "blocks"_a)
        .def("words", &words_of, "segment"_a)
        .def("load_words", &load_words);
}

}  // namespace gompfs
