// The class gompfs._native.grammar.GrammarBuilder, the kinds of builders, and the word rules.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"
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

void add_files(GrammarBuilder& builder,
               const py::Sequence<py::Tuple<std::uint64_t, py::Buffer>>& files) {
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

void add_bytes(GrammarBuilder& builder, const py::Buffer& bytes) {
    const BufferView view(bytes, PyBUF_SIMPLE);
    run_interruptibly([&] { builder.add_bytes(as_text(view.bytes())); });
}

void finish(GrammarBuilder& builder) {
    run_interruptibly([&] { builder.finish(); });
}

std::optional<NewArray<std::uint8_t>> next_piece(GrammarBuilder& builder) {
    std::optional<std::vector<std::uint8_t>> piece;
    run_interruptibly([&] { piece = builder.next_piece(); });
    return piece ? std::optional(to_array(std::move(*piece))) : std::nullopt;
}

// (part numbers, text, file ends, first files of parts)
using TakenTexts = py::Tuple<std::vector<std::size_t>, nb::memoryview, NewArray<std::uint32_t>,
                             NewArray<std::uint32_t>>;

std::optional<TakenTexts> take_texts(GrammarBuilder& builder, std::size_t least, std::size_t most,
                                     const py::Callable<nb::memoryview(std::size_t)>& allocate,
                                     unsigned num_threads) {
    std::optional<PartsInText> parts;
    {
        const nb::gil_scoped_release release;
        parts = builder.take_texts(least, most);
    }
    if (!parts) {
        return std::nullopt;
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
    nb::enum_<BuilderKind>(grammar, "BuilderKind", "How the rules of a grammar are built.")
        .value("REPAIR", BuilderKind::repair)
        .value("SEQUITUR", BuilderKind::sequitur)
        .value("NONE", BuilderKind::none, "The root contains all words. No section stores it.");
    nb::enum_<WordRule>(grammar, "WordRule",
                        "What a word is, in the order of gompfs.model.WORD_RULES.")
        .value("WHITESPACE", WordRule::whitespace)
        .value("LETTERS", WordRule::letters)
        .value("IDENTIFIERS", WordRule::identifiers);
    nb::class_<GrammarBuilder>(grammar, "GrammarBuilder",
                               "Builds one grammar section, or takes text without rules. No two of "
                               "its methods may run at once.")
        .def(
            "__init__", &init, "builder"_a, "word_rule"_a, "word_characters"_a, "num_threads"_a,
            "external_rules"_a = false,
            "`word_characters` is the bitmap of the characters of words for LETTERS, else "
            "empty.\n\n"
            "Raises ValueError if the bitmap is missing or superfluous. With `external_rules`, the "
            "caller builds the rules: see `take_texts` and `give_rules`.")
        .def("add_files", &add_files, "files"_a, "Adds whole files: inode numbers and contents.")
        .def("begin_file", &GrammarBuilder::begin_file, "ino"_a,
             nb::call_guard<nb::gil_scoped_release>())
        .def("add_bytes", &add_bytes, "piece"_a)
        .def("end_file", &GrammarBuilder::end_file)
        .def("take_texts", &take_texts, "least"_a, "most"_a, "allocate"_a, "num_threads"_a,
             "Takes up to `most` parts, which the caller builds: their numbers, then the fields of "
             "PartsInText.\n\n"
             "The text is in memory that `allocate` returns for its size. Returns None if fewer "
             "than `least` parts wait. Raises ValueError if the memory has another size.")
        .def(
            "give_rules", &give_rules, "numbers"_a, "word_bytes"_a, "word_ends"_a, "part_words"_a,
            "symbols"_a, "rule_ends"_a, "part_rules"_a,
            "Gives the words and rules of the parts with these numbers, as in PartsInRules. Raises "
            "ValueError if they are not valid.")
        .def("finish", &finish, "Ends the input and waits until all parts are built.")
        .def("next_piece", &next_piece,
             "Returns the next piece of the grammar section; None after the last.")
        .def("take", &take, nb::rv_policy::take_ownership,
             "With no rules: returns the grammar of the text added since the last call.");
}

}  // namespace gompfs
