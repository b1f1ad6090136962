// The class gompfs._native.parts.PartsBuilder.
#include "parts/parts_builder.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/block_facts.h"
#include "bindings/buffer_view.h"
#include "bindings/interruptible.h"
#include "common/contents.h"
#include "parts/word_section.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void init(PartsBuilder* self, WordRule rule, const nb::bytes& word_characters,
          std::uint32_t block_size, std::uint32_t part_size, unsigned num_threads,
          std::string directory, std::uint32_t max_shared_bytes) {
    new (self)
        PartsBuilder(Tokenizer(rule, as_vector(word_characters)),
                     {block_size, part_size, num_threads, std::move(directory), max_shared_bytes});
}

// Files are bytes-like objects, or a Contents for several.
void add_files(PartsBuilder& builder, nb::sequence files) {
    std::vector<BufferView> views;
    std::vector<std::string_view> texts;
    const std::size_t count = nb::len(files);
    views.reserve(count);
    for (std::size_t index = 0; index < count; ++index) {
        const nb::object file = files[index];
        if (const Contents* contents = nullptr; nb::try_cast(file, contents)) {
            for (const auto& content : contents->files()) {
                texts.push_back(as_text(content->bytes));
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

void add_bytes(PartsBuilder& builder, nb::handle bytes) {
    const BufferView view(bytes, PyBUF_SIMPLE);
    run_interruptibly([&] { builder.add_bytes(as_text(view.bytes())); });
}

void end_file(PartsBuilder& builder) {
    run_interruptibly([&] { builder.end_file(); });
}

void finish(PartsBuilder& builder) {
    run_interruptibly([&] { builder.finish(); });
}

// Rows of the table extent for inodes, given as tuples (inode number, number of a file). Part p
// begins at part_starts[p] of the stream.
nb::list extent_rows(const PartsBuilder& builder, const nb::list& inodes,
                     const std::vector<std::uint64_t>& part_starts) {
    const std::vector<FilePiece>& pieces = builder.pieces();
    nb::list rows;
    for (const nb::handle inode : inodes) {
        const auto [ino, file] = nb::cast<std::pair<std::uint64_t, std::uint32_t>>(inode);
        auto piece = std::lower_bound(
            pieces.begin(), pieces.end(), file,
            [](const FilePiece& each, std::uint32_t number) { return each.file < number; });
        std::uint64_t file_offset = 0;
        for (; piece != pieces.end() && piece->file == file; ++piece) {
            const std::uint64_t start = part_starts.at(piece->part) + piece->offset;
            rows.append(nb::make_tuple(ino, file_offset, start, piece->size));
            file_offset += piece->size;
        }
    }
    return rows;
}

// The next parts as tuples (head, blocks), with an empty head for a part without one, and blocks as
// with_facts returns them.
nb::list next_parts(PartsBuilder& builder) {
    std::vector<EncodedPart> parts;
    run_interruptibly([&] { parts = builder.next_parts(); });
    nb::list result;
    for (const EncodedPart& part : parts) {
        nb::list blocks;
        for (const std::vector<std::uint8_t>& block : part.blocks) {
            blocks.append(with_facts(to_bytes(block)));
        }
        result.append(nb::make_tuple(to_bytes(part.head), blocks));
    }
    return result;
}

nb::bytes word_section(const PartsBuilder& builder) { return to_bytes(builder.word_section()); }

void check_word_section(nb::handle section, std::uint64_t max_bytes) {
    const BufferView view(section, PyBUF_SIMPLE);
    const nb::gil_scoped_release release;
    const WordSection read(view.bytes(), max_bytes);
}

}  // namespace

void bind_parts_builder(nb::module_& parts) {
    parts.def("check_word_section", &check_word_section, "section"_a, "max_bytes"_a);
    nb::class_<PartsBuilder>(parts, "PartsBuilder")
        .def("__init__", &init, "word_rule"_a, "word_characters"_a, "block_size"_a, "part_size"_a,
             "num_threads"_a, "directory"_a, "max_shared_bytes"_a = ~std::uint32_t{0})
        .def("add_files", &add_files, "files"_a)
        .def("add_bytes", &add_bytes, "piece"_a)
        .def("end_file", &end_file)
        .def("finish", &finish)
        .def("extent_rows", &extent_rows, "inodes"_a, "part_starts"_a)
        .def("part_sizes", &PartsBuilder::part_sizes)
        .def("word_section", &word_section)
        .def("next_parts", &next_parts)
        .def_prop_ro("num_wrong", &PartsBuilder::num_wrong);
}

}  // namespace gompfs
