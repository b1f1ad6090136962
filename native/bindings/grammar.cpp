// The class gompfs._native.text.Grammar, the word rules, and the functions that make grammars.
#include "text/grammar.h"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/held_parts.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"
#include "text/segment_grammar.h"
#include "text/tokenizer.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

Grammar* read_parts(const StoredText& parts, const py::Buffer& extents,
                    const py::Buffer& word_section, std::uint64_t max_word_bytes,
                    WordRule word_rule, const nb::bytes& word_characters, unsigned num_threads) {
    const HeldParts held(parts, extents, word_section, max_word_bytes, word_rule, word_characters);
    auto grammar = std::make_unique<Grammar>();
    run_interruptibly([&] {
        *grammar = read_segment_grammar(held.parts, held.extents, held.words, held.max_word_bytes,
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

NewArray<std::uint64_t> inos(const Grammar& grammar) {
    std::vector<std::uint64_t> inos;
    for (const Part& part : grammar.parts) {
        inos.insert(inos.end(), part.inos.begin(), part.inos.end());
    }
    return to_array(std::move(inos));
}

}  // namespace

void bind_grammar(nb::module_& text) {
    text.attr("SPLITTER") = kSplitter;
    nb::enum_<WordRule>(text, "WordRule",
                        "What a word is, in the order of gompfs.model.WORD_RULES.")
        .value("WHITESPACE", WordRule::whitespace)
        .value("LETTERS", WordRule::letters)
        .value("IDENTIFIERS", WordRule::identifiers);
    nb::class_<Grammar>(text, "Grammar", "The words of text, as a grammar.")
        .def_ro("word_rule", &Grammar::word_rule)
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
        .def("inos", &inos,
             "Returns the inode numbers of the files of each part, one part after another.")
        .def("part_sizes", &part_sizes,
             "Returns for each part its number of files and its number of symbols.");
    text.def(
        "read_segment_grammar", &read_parts, "parts"_a, "extents"_a, "word_section"_a,
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
