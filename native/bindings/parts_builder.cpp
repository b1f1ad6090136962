// The class gompfs._native.text.PartsBuilder.
#include "text/parts_builder.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/block_facts.h"
#include "bindings/buffer_view.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"
#include "common/contents.h"
#include "text/word_section.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void init(PartsBuilder* self, WordRule rule, const nb::bytes& word_characters,
          std::uint32_t block_size, std::uint32_t part_size, unsigned num_threads,
          std::string directory, std::uint32_t max_shared_bytes,
          std::optional<std::uint32_t> max_part_size, int level) {
    new (self) PartsBuilder(Tokenizer(rule, as_vector(word_characters)),
                            {block_size, part_size, max_part_size.value_or(part_size), num_threads,
                             std::move(directory), max_shared_bytes, level});
}

void add_files(PartsBuilder& builder,
               const py::Sequence<std::variant<py::Buffer, Contents>>& files) {
    std::vector<BufferView> views;
    std::vector<std::string_view> texts;
    const std::size_t count = nb::len(files);
    views.reserve(count);
    for (std::size_t index = 0; index < count; ++index) {
        const nb::object file = files[index];
        if (const Contents* contents = nullptr; nb::try_cast(file, contents)) {
            for (const Contents::Slice& slice : contents->slices()) {
                texts.push_back(as_text(slice.bytes()));
            }
        } else {
            texts.push_back(as_text(views.emplace_back(file, PyBUF_SIMPLE).bytes()));
        }
    }
    run_interruptibly([&] {
        for (const std::string_view text : texts) {
            builder.add_bytes(text);
            builder.end_file();
        }
    });
}

void add_bytes(PartsBuilder& builder, const py::Buffer& bytes) {
    const BufferView view(bytes, PyBUF_SIMPLE);
    run_interruptibly([&] { builder.add_bytes(as_text(view.bytes())); });
}

void end_file(PartsBuilder& builder) {
    run_interruptibly([&] { builder.end_file(); });
}

void finish(PartsBuilder& builder) {
    run_interruptibly([&] { builder.finish(); });
}

using ExtentRow = py::Tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;

void add_inodes(PartsBuilder& builder,
                const std::vector<std::pair<std::uint64_t, std::uint64_t>>& inodes) {
    for (const auto& [ino, file] : inodes) {
        builder.add_inode(ino, file);
    }
}

py::List<ExtentRow> extent_rows(const PartsBuilder& builder, std::uint64_t first, std::uint64_t end,
                                const std::vector<std::uint64_t>& part_starts) {
    py::List<ExtentRow> rows;
    for (const InodeExtent& row : builder.extents(first, end - first, part_starts)) {
        rows.append(nb::make_tuple(row.ino, row.file_offset, row.stream_offset, row.size));
    }
    return rows;
}

using PartResult = py::Tuple<nb::bytes, py::List<EncodedBlock>>;

py::List<PartResult> next_parts(PartsBuilder& builder) {
    std::vector<EncodedPart> parts;
    run_interruptibly([&] { parts = builder.next_parts(); });
    py::List<PartResult> result;
    for (const EncodedPart& part : parts) {
        py::List<EncodedBlock> blocks;
        for (const std::vector<std::uint8_t>& block : part.blocks) {
            blocks.append(with_facts(to_bytes(block)));
        }
        result.append(nb::make_tuple(to_bytes(part.head), blocks));
    }
    return result;
}

nb::bytes word_section(const PartsBuilder& builder) { return to_bytes(builder.word_section()); }

void check_word_section(const py::Buffer& section, std::uint64_t max_bytes) {
    const BufferView view(section, PyBUF_SIMPLE);
    const nb::gil_scoped_release release;
    const WordSection read(view.bytes(), max_bytes);
}

}  // namespace

void bind_parts_builder(nb::module_& text) {
    text.def(
        "check_word_section", &check_word_section, "section"_a, "max_bytes"_a,
        "Raises ValueError if a section `words` cannot be read, or if its words have more than "
        "`max_bytes` together.");
    nb::class_<PartsBuilder>(
        text, "PartsBuilder",
        "Builds the parts of a segment from the text of files, on several threads.")
        .def("__init__", &init, "word_rule"_a, "word_characters"_a, "block_size"_a, "part_size"_a,
             "num_threads"_a, "directory"_a, "max_shared_bytes"_a = ~std::uint32_t{0},
             "max_part_size"_a = nb::none(), "level"_a = 6,
             "Sizes are in bytes. `word_characters` has a bit for each code point; `directory` is "
             "for a "
             "temporary file.\n\n"
             "The words that several parts share have at most `max_shared_bytes`, with a space "
             "each, and so do the separators. With `max_part_size`, a part may be that large: text "
             "that it has already does not count for `part_size`.")
        .def("add_files", &add_files, "files"_a,
             "Adds whole files, a Contents being several. Files are numbered from 0.")
        .def("add_bytes", &add_bytes, "piece"_a, "Adds a piece of a file.")
        .def("end_file", &end_file, "Ends a file that came in pieces.")
        .def(
            "finish", &finish,
            "Ends the input; then the functions below may be called. Raises OSError if the disk is "
            "full.")
        .def("add_inodes", &add_inodes, "inodes"_a,
             "Says which inodes have the text of files, given as (inode number, number of a "
             "file).")
        .def_prop_ro("num_inodes", &PartsBuilder::num_inodes, "The number of inodes added.")
        .def(
            "extent_rows", &extent_rows, "first"_a, "end"_a, "part_starts"_a,
            "Returns rows of the table extent for the inodes `first` to `end` - 1, in the order in "
            "which they were added.\n\n"
            "Part p begins at `part_starts[p]` of the stream. A file without bytes has no row.")
        .def("part_sizes", &PartsBuilder::part_sizes,
             "Returns the size of the text of each part in bytes.")
        .def("word_section", &word_section,
             "Returns the section `words`. Raises RuntimeError if a reader would read other words.")
        .def("next_parts", &next_parts,
             "Returns the head of each of the next parts, and its blocks with codecs and "
             "uncompressed sizes.\n\n"
             "Returns an empty list after the last part. A part without a head has b\"\".")
        .def_prop_ro(
            "num_wrong", &PartsBuilder::num_wrong,
            "The number of grammars and blocks that did not decode to their text, and were encoded "
            "in another way.");
}

}  // namespace gompfs
