// The class gompfs._native.grammar.GrammarBuilder, the kinds of builders, and the word rules.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/interruptible.h"
#include "grammar/builder.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void init(GrammarBuilder* self, BuilderKind builder, WordRule word_rule,
          const nb::bytes& word_characters, unsigned num_threads, bool external_rules) {
    new (self) GrammarBuilder(builder, Tokenizer(word_rule, as_vector(word_characters)),
                              num_threads, external_rules);
}

void add_files(GrammarBuilder& builder, nb::sequence files) {
    const std::size_t count = nb::len(files);
    std::vector<std::pair<std::uint64_t, BufferView>> views;
    views.reserve(count);
    for (std::size_t index = 0; index < count; ++index) {
        const nb::tuple file = nb::cast<nb::tuple>(files[index]);
        views.emplace_back(nb::cast<std::uint64_t>(file[0]), BufferView(file[1], PyBUF_SIMPLE));
    }
    run_interruptibly([&] {
        for (const auto& [ino, view] : views) {
            builder.begin_file(ino);
            builder.add_bytes(as_text(view.bytes()));
            builder.end_file();
        }
    });
}

void add_bytes(GrammarBuilder& builder, nb::handle bytes) {
    const BufferView view(bytes, PyBUF_SIMPLE);
    run_interruptibly([&] { builder.add_bytes(as_text(view.bytes())); });
}

void finish(GrammarBuilder& builder) {
    run_interruptibly([&] { builder.finish(); });
}

nb::object next_piece(GrammarBuilder& builder) {
    std::optional<std::vector<std::uint8_t>> piece;
    run_interruptibly([&] { piece = builder.next_piece(); });
    return piece ? to_array(std::move(*piece)) : nb::none();
}

// Returns (part numbers, text, file ends, first files of parts), with the text in an array that
// `allocate` returns for its size; or None.
nb::object take_texts(GrammarBuilder& builder, std::size_t least, std::size_t most,
                      nb::callable allocate, unsigned num_threads) {
    std::optional<PartsInText> parts;
    {
        const nb::gil_scoped_release release;
        parts = builder.take_texts(least, most);
    }
    if (!parts) {
        return nb::none();
    }
    const std::vector<std::size_t> numbers = parts->numbers();
    const nb::object text = allocate(parts->size());
    const BufferView view(text, PyBUF_SIMPLE | PyBUF_WRITABLE);
    {
        const nb::gil_scoped_release release;
        parts->move_to(view.mutable_bytes(), num_threads);
    }
    return nb::make_tuple(nb::cast(numbers), text, to_array(std::move(parts->file_ends)),
                          to_array(std::move(parts->part_files)));
}

using Numbers = Array<std::uint32_t>;

void give_rules(GrammarBuilder& builder, const std::vector<std::size_t>& numbers,
                const Array<std::uint8_t>& word_bytes, const Numbers& word_ends,
                const Numbers& part_words, const Numbers& symbols, const Numbers& rule_ends,
                const Numbers& part_rules) {
    const nb::gil_scoped_release release;
    builder.give_rules(numbers,
                       {as_text(as_span(word_bytes)), as_span(word_ends), as_span(part_words),
                        as_span(symbols), as_span(rule_ends), as_span(part_rules)});
}

Grammar* take(GrammarBuilder& builder) {
    auto grammar = std::make_unique<Grammar>();
    run_interruptibly([&] { *grammar = builder.take(); });
    return grammar.release();
}

}  // namespace

void bind_grammar_builder(nb::module_& grammar) {
    nb::enum_<BuilderKind>(grammar, "BuilderKind")
        .value("REPAIR", BuilderKind::repair)
        .value("SEQUITUR", BuilderKind::sequitur)
        .value("NONE", BuilderKind::none);
    nb::enum_<WordRule>(grammar, "WordRule")
        .value("WHITESPACE", WordRule::whitespace)
        .value("LETTERS", WordRule::letters)
        .value("IDENTIFIERS", WordRule::identifiers);
    nb::class_<GrammarBuilder>(grammar, "GrammarBuilder")
        .def("__init__", &init, "builder"_a, "word_rule"_a, "word_characters"_a, "num_threads"_a,
             "external_rules"_a = false)
        .def("add_files", &add_files, "files"_a)
        .def("begin_file", &GrammarBuilder::begin_file, "ino"_a,
             nb::call_guard<nb::gil_scoped_release>())
        .def("add_bytes", &add_bytes, "piece"_a)
        .def("end_file", &GrammarBuilder::end_file)
        .def("take_texts", &take_texts, "least"_a, "most"_a, "allocate"_a, "num_threads"_a)
        .def("give_rules", &give_rules, "numbers"_a, "word_bytes"_a, "word_ends"_a, "part_words"_a,
             "symbols"_a, "rule_ends"_a, "part_rules"_a)
        .def("finish", &finish)
        .def("next_piece", &next_piece)
        .def("take", &take, nb::rv_policy::take_ownership);
}

}  // namespace gompfs
