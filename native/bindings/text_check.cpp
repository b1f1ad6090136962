// The class gompfs._native.grammar.TextCheck.
#include "grammar/text_check.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void init(TextCheck* self, const Grammar* grammar, WordRule word_rule,
          const nb::bytes& word_characters) {
    new (self) TextCheck(grammar, Tokenizer(word_rule, as_vector(word_characters)));
}

void add(TextCheck& check, const py::Buffer& text) {
    const BufferView view(text, PyBUF_SIMPLE);
    run_interruptibly([&] { check.add(as_text(view.bytes())); });
}

using WordDifference = py::Tuple<std::uint64_t, std::optional<nb::bytes>, std::optional<nb::bytes>>;

std::optional<WordDifference> end(TextCheck& check) {
    std::optional<Difference> difference;
    run_interruptibly([&] { difference = check.end(); });
    if (!difference) {
        return std::nullopt;
    }
    const auto word = [](const std::optional<std::string>& text) -> nb::object {
        return text ? nb::object(to_bytes(*text)) : nb::none();
    };
    return nb::make_tuple(difference->number, word(difference->in_text),
                          word(difference->in_grammar));
}

}  // namespace

void bind_text_check(nb::module_& grammar) {
    nb::class_<TextCheck>(
        grammar, "TextCheck",
        "Compares files with a grammar, word by word. Without a grammar, files are expected to "
        "have no words.")
        .def("__init__", &init, "grammar"_a.none(), "word_rule"_a, "word_characters"_a,
             nb::keep_alive<1, 2>())
        .def("begin", &TextCheck::begin, "pieces"_a,
             "Begins the next file; `pieces` are the numbers of the parts that contain it, and its "
             "indexes in them.")
        .def("add", &add, "text"_a, "Compares the next piece of the file.")
        .def("end", &end,
             "Returns the first difference: index of the word, the word of the text, and the word "
             "of the grammar.\n\n"
             "Returns None if there is none. A word is None if that side has ended.");
}

}  // namespace gompfs
