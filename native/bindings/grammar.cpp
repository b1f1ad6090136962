// The class gompfs._native.grammar.Grammar, and the functions that make grammars without a builder.
#include "grammar/grammar.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/held_parts.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"
#include "common/failures.h"
#include "grammar/rule_sizes.h"
#include "grammar/section_reader.h"
#include "grammar/text_check.h"
#include "grammar/tokenizer.h"
#include "grammar/tokens.h"
#include "parts/parts_grammar.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

Grammar* read(const py::Buffer& section, unsigned num_threads) {
    const BufferView view(section, PyBUF_SIMPLE);
    auto grammar = std::make_unique<Grammar>();
    run_interruptibly([&] { *grammar = read_grammar(view.bytes(), num_threads); });
    return grammar.release();
}

// (continues, inos, ends, words)
using Batch = py::Tuple<bool, Array<std::uint64_t>, Array<std::uint64_t>, Array<std::uint32_t>>;

Grammar* make_of_tokens(const Array<std::uint64_t>& starts, const Array<std::uint8_t>& bytes,
                        WordRule word_rule, const Array<std::uint32_t>& ranks,
                        const py::List<Batch>& batches, unsigned num_threads) {
    std::vector<TokenizedFiles> files;
    for (const nb::handle batch : batches) {
        const auto fields = nb::cast<nb::tuple>(batch);
        files.push_back({nb::cast<bool>(fields[0]),
                         as_span(nb::cast<Array<std::uint64_t>>(fields[1])),
                         as_span(nb::cast<Array<std::uint64_t>>(fields[2])),
                         as_span(nb::cast<Array<std::uint32_t>>(fields[3]))});
    }
    auto grammar = std::make_unique<Grammar>();
    run_interruptibly([&] {
        *grammar = grammar_of_tokens(make_dictionary(as_span(starts), as_span(bytes)), word_rule,
                                     as_span(ranks), files, num_threads);
    });
    return grammar.release();
}

Grammar* read_parts(const StoredText& parts, const py::Buffer& extents,
                    const py::Buffer& word_section, std::uint64_t max_word_bytes,
                    WordRule word_rule, const nb::bytes& word_characters, unsigned num_threads) {
    const HeldParts held(parts, extents, word_section, max_word_bytes, word_rule, word_characters);
    auto grammar = std::make_unique<Grammar>();
    run_interruptibly([&] {
        *grammar = read_parts_grammar(held.parts, held.extents, held.words, held.max_word_bytes,
                                      held.tokenizer, num_threads);
    });
    return grammar.release();
}

nb::bytes word(const Grammar& grammar, std::uint32_t number) {
    if (number >= grammar.dictionary.size()) {
        throw nb::index_error();
    }
    return to_bytes(grammar.dictionary.word(number));
}

using PartFields = py::Tuple<bool, std::uint64_t, NewArray<std::uint64_t>, NewArray<std::uint32_t>,
                             NewArray<std::uint64_t>, NewArray<std::uint32_t>>;

PartFields part(const Grammar& grammar, std::size_t index) {
    if (index >= grammar.parts.size()) {
        throw nb::index_error();
    }
    const Part& part = grammar.parts[index];
    return nb::make_tuple(part.continues, part.num_tokens, to_array(part.inos),
                          to_array(part.words), to_array(part.rules.starts),
                          to_array(part.rules.symbols));
}

py::List<py::Tuple<std::size_t, std::size_t>> part_sizes(const Grammar& grammar) {
    py::List<py::Tuple<std::size_t, std::size_t>> sizes;
    for (const Part& part : grammar.parts) {
        sizes.append(nb::make_tuple(part.inos.size(), part.rules.symbols.size()));
    }
    return sizes;
}

using PartFiles = py::Tuple<bool, NewArray<std::uint64_t>, NewArray<std::uint64_t>>;

py::List<PartFiles> files(const Grammar& grammar, unsigned num_threads) {
    std::vector<std::vector<std::uint64_t>> sizes(grammar.parts.size());
    run_interruptibly([&] {
        parallel_for(sizes.size(), num_threads,
                     [&](std::size_t index) { sizes[index] = file_sizes(grammar.parts[index]); });
    });
    py::List<PartFiles> files;
    for (std::size_t index = 0; index < sizes.size(); ++index) {
        const Part& part = grammar.parts[index];
        files.append(nb::make_tuple(part.continues, to_array(part.inos), to_array(sizes[index])));
    }
    return files;
}

bool words_have_separators(const Grammar& grammar) {
    const nb::gil_scoped_release release;
    return has_separator(grammar.word_rule,
                         {grammar.dictionary.bytes.data(), grammar.dictionary.bytes.size()});
}

}  // namespace

void bind_grammar(nb::module_& grammar) {
    grammar.attr("SPLITTER") = kSplitter;
    nb::class_<Grammar>(grammar, "Grammar",
                        "A checked grammar section, or the grammar of text that has no rules.")
        .def_ro("word_rule", &Grammar::word_rule)
        .def_ro("builder", &Grammar::builder)
        .def_prop_ro("num_bytes", &Grammar::size_in_memory, "Size in memory.")
        .def(
            "drop_parts", [](Grammar& self) { self.parts = {}; },
            "Frees everything except the dictionary.")
        .def_prop_ro("num_words", [](const Grammar& self) { return self.dictionary.size(); })
        .def_prop_ro("num_parts", [](const Grammar& self) { return self.parts.size(); })
        .def("word", &word, "number"_a, "Returns a word of the dictionary. Raises IndexError.")
        .def("part", &part, "index"_a,
             "Returns copies of a part's fields. Raises IndexError.\n\n"
             "They are: whether its first file began in the part before, its number of words with "
             "repetitions, its inodes, the dictionary's numbers of its words, the starts of its "
             "rules, and its symbols.")
        .def("files", &files, "num_threads"_a,
             "Returns for each part: whether its first file began in the part before, its inodes, "
             "and their word counts.")
        .def("part_sizes", &part_sizes,
             "Returns for each part its number of files and its number of symbols.")
        .def("words_have_separators", &words_have_separators,
             "Whether a word contains an ASCII character that separates words.")
        .def("has_short_rules", &has_short_rules,
             "Whether a rule other than a root has fewer than two symbols.");
    grammar.def("read_grammar", &read, "section"_a, "num_threads"_a, nb::rv_policy::take_ownership,
                "Reads and checks a grammar section. Raises ValueError, naming what is wrong.");
    grammar.def(
        "grammar_of_tokens", &make_of_tokens, "starts"_a, "content"_a, "word_rule"_a, "ranks"_a,
        "batches"_a, "num_threads"_a, nb::rv_policy::take_ownership,
        "See native/grammar/tokens.h. Raises ValueError if the numbers are not consistent.");
    grammar.def(
        "read_parts_grammar", &read_parts, "parts"_a, "extents"_a, "word_section"_a,
        "max_word_bytes"_a, "word_rule"_a, "word_characters"_a, "num_threads"_a,
        nb::rv_policy::take_ownership,
        "Returns the grammar of the words of a segment whose text is stored in parts.\n\n"
        "`parts` are a descriptor, which is closed, or a function read(offset, size); the block "
        "size; columns by part: offset in the solid stream, size, archive offset of the head "
        "(u64), size of the head (u32; 0: no head), first block (u64), and the text of each part "
        "without a head; columns by block: archive offset (u64), stored size (u32). `extents` are "
        "all rows of the index: inode number, file offset, offset in the solid stream, size (u64). "
        "Raises ValueError, naming what is wrong, and what reading raises.");
}

}  // namespace gompfs
