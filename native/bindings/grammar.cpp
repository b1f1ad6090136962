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

Grammar* read(nb::handle section, unsigned num_threads) {
    const BufferView view(section, PyBUF_SIMPLE);
    auto grammar = std::make_unique<Grammar>();
    run_interruptibly([&] { *grammar = read_grammar(view.bytes(), num_threads); });
    return grammar.release();
}

// `batches` are tuples of (continues, inos, ends, words).
Grammar* make_of_tokens(const Array<std::uint64_t>& starts, const Array<std::uint8_t>& bytes,
                        WordRule word_rule, const Array<std::uint32_t>& ranks, nb::list batches,
                        unsigned num_threads) {
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

// See HeldParts.
Grammar* read_parts(const nb::tuple& parts, nb::handle extents, nb::handle word_section,
                    std::uint64_t max_word_bytes, WordRule word_rule,
                    const nb::bytes& word_characters, unsigned num_threads) {
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

nb::tuple part(const Grammar& grammar, std::size_t index) {
    if (index >= grammar.parts.size()) {
        throw nb::index_error();
    }
    const Part& part = grammar.parts[index];
    return nb::make_tuple(part.continues, part.num_tokens, to_array(part.inos),
                          to_array(part.words), to_array(part.rules.starts),
                          to_array(part.rules.symbols));
}

nb::list part_sizes(const Grammar& grammar) {
    nb::list sizes;
    for (const Part& part : grammar.parts) {
        sizes.append(nb::make_tuple(part.inos.size(), part.rules.symbols.size()));
    }
    return sizes;
}

nb::list files(const Grammar& grammar, unsigned num_threads) {
    std::vector<std::vector<std::uint64_t>> sizes(grammar.parts.size());
    run_interruptibly([&] {
        parallel_for(sizes.size(), num_threads,
                     [&](std::size_t index) { sizes[index] = file_sizes(grammar.parts[index]); });
    });
    nb::list files;
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
    nb::class_<Grammar>(grammar, "Grammar")
        .def_ro("word_rule", &Grammar::word_rule)
        .def_ro("builder", &Grammar::builder)
        .def_prop_ro("num_bytes", &Grammar::size_in_memory)
        .def("drop_parts", [](Grammar& self) { self.parts = {}; })
        .def_prop_ro("num_words", [](const Grammar& self) { return self.dictionary.size(); })
        .def_prop_ro("num_parts", [](const Grammar& self) { return self.parts.size(); })
        .def("word", &word, "number"_a)
        .def("part", &part, "index"_a)
        .def("files", &files, "num_threads"_a)
        .def("part_sizes", &part_sizes)
        .def("words_have_separators", &words_have_separators)
        .def("has_short_rules", &has_short_rules);
    grammar.def("read_grammar", &read, "section"_a, "num_threads"_a, nb::rv_policy::take_ownership);
    grammar.def("grammar_of_tokens", &make_of_tokens, "starts"_a, "content"_a, "word_rule"_a,
                "ranks"_a, "batches"_a, "num_threads"_a, nb::rv_policy::take_ownership);
    grammar.def("read_parts_grammar", &read_parts, "parts"_a, "extents"_a, "word_section"_a,
                "max_word_bytes"_a, "word_rule"_a, "word_characters"_a, "num_threads"_a,
                nb::rv_policy::take_ownership);
}

}  // namespace gompfs
