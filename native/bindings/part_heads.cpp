// The classes gompfs._native.text.PartHeads and SymbolTable.
#include "text/part_heads.h"

#define XXH_INLINE_ALL
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
#include <xxhash.h>

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
#include "bindings/types.h"
#include "bindings/values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using SectionColumns = std::tuple<py::Buffer, py::Buffer>;
using WordColumns = std::tuple<py::Buffer, py::Buffer, py::Buffer>;
using Columns = std::tuple<py::Buffer, py::Buffer, py::Buffer, py::Buffer, WordColumns>;

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

py::Tuple<py::List<std::optional<SharedSymbols>>, nb::bytes> open_all(
    PartHeads& heads, const std::vector<std::uint64_t>& blocks) {
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

using Starts = NewArray<const std::uint32_t>;
using Texts = NewArray<const std::uint8_t>;
using Words = py::Tuple<Starts, Texts, Starts, Texts>;

Words words_of(PartHeads& heads, std::size_t segment) {
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
NewArray<const std::uint64_t> expansions_of(const SharedSymbols& shared) {
    static_assert(sizeof(Expansion) == sizeof(std::uint64_t));
    const std::vector<Expansion>& expansions = shared.table->expansions;
    return to_view(shared, std::span(reinterpret_cast<const std::uint64_t*>(expansions.data()),
                                     expansions.size()));
}

std::span<const std::uint8_t> pool_of(const SymbolTable& table) {
    const std::size_t size = table.is_dictionary() ? table.dictionary_size
                                                   : table.pool.size() - SymbolTable::kPoolMargin;
    return {table.pool.data(), size};
}

NewArray<const std::uint8_t> pool_view(const SharedSymbols& shared) {
    return to_view(shared, pool_of(*shared.table));
}

std::uint64_t pool_xxh3(const SharedSymbols& shared) {
    const auto pool = pool_of(*shared.table);
    return XXH3_64bits(pool.data(), pool.size());
}

NewArray<const std::uint64_t> code_of(const SharedSymbols& shared) {
    return to_view(shared, shared.table->code.entries);
}

void load_words(PartHeads& heads) {
    const nb::gil_scoped_release release;
    for (std::size_t segment = 0; segment < heads.segments().size(); ++segment) {
        heads.words(segment);
    }
}

}  // namespace

void bind_part_heads(nb::module_& text) {
    nb::class_<SharedSymbols>(text, "SymbolTable",
                              "The symbols of a part, which its blocks refer to, or a dictionary, "
                              "which is a pool without symbols.\n\n"
                              "The arrays are views, which keep the symbols alive.")
        .def("__len__", [](const SharedSymbols& shared) { return shared.table->expansions.size(); })
        .def_prop_ro(
            "is_dictionary",
            [](const SharedSymbols& shared) { return shared.table->is_dictionary(); },
            "Whether this is a dictionary, for blocks of gompresso-bit-dictionary.")
        .def_prop_ro(
            "number", [](const SharedSymbols& shared) { return shared.table->number; },
            "A number that no other symbols of this process have or had.")
        .def_prop_ro("expansions", &expansions_of,
                     "What the symbol of each rank stands for.\n\n"
                     "Bits 0 to 31 are the offset in the pool, bits 32 to 61 the size. Bit 62 says "
                     "whether it ends with a word, and bit 63 whether it begins with a separator.")
        .def_prop_ro("pool", &pool_view, "The bytes of all symbols, or of the dictionary.")
        .def_prop_ro("pool_xxh3", &pool_xxh3, "The checksum of `pool` that its head has.")
        .def_prop_ro("code", &code_of,
                     "The class code of ranks: for each value of the next bits of a stream, the "
                     "codeword that they begin with.\n\n"
                     "Bits 0 to 7 are the number of bits of the codeword (0 if the code is empty), "
                     "and bits 24 to 31 the class.");
    nb::class_<PartHeads>(
        text, "PartHeads",
        "The heads of an archive's parts, decoded when a block needs them. Thread-safe.")
        .def(
            "__init__", &init, "segments"_a, "file"_a, "capacity"_a, "num_threads"_a,
            "dictionary"_a = nb::none(),
            "Keeps up to `capacity` bytes of decoded heads. Up to `num_threads` threads read "
            "words, and several heads.\n\n"
            "Each segment has columns: the first block of each part and the end of the last (u64), "
            "archive_offset (u64) and size (u32) of each head, for each part 1 if it uses the "
            "dictionary, else 0 (u8), and archive_offset (u64), compressed_size (u32) and "
            "uncompressed_size (u32) of the blocks of its words. `dictionary` has the first two of "
            "these for the dictionary of the archive. `file` is a descriptor, which is closed with "
            "this object, or a function that returns `size` bytes at an offset. Raises ValueError "
            "for columns of different lengths.")
        .def(
            "open", &open_all, "blocks"_a,
            "Returns the symbols of each block's part, and the BlockStatus of its head or of the "
            "dictionary.\n\n"
            "The symbols of a part that uses the dictionary are the dictionary. There are none for "
            "other parts without a head, nor if what a part needs is damaged. Raises OSError, and "
            "what `file` raises.")
        .def(
            "words", &words_of, "segment"_a,
            "Returns the words that the parts of a segment share.\n\n"
            "The arrays are: where each word begins, and the end of the last; the words, each with "
            "a space after it; the same for separators. They are views, which keep this object "
            "alive, and empty if their section is damaged. Raises IndexError, OSError, and what "
            "`file` raises.")
        .def("load_words", &load_words,
             "Reads the words that parts share, unless they were read. Raises OSError, and what "
             "`file` raises.");
}

}  // namespace gompfs
