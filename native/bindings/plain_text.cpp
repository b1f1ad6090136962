// The class gompfs._native.text.PlainText.
#include "text/plain_text.h"

#include <nanobind/nanobind.h>

#include <memory>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void init(PlainText* self, WordRule rule, const nb::bytes& word_characters, unsigned num_threads) {
    new (self) PlainText(Tokenizer(rule, as_vector(word_characters)), num_threads);
}

void add_bytes(PlainText& text, const py::Buffer& bytes) {
    const BufferView view(bytes, PyBUF_SIMPLE);
    run_interruptibly([&] { text.add_bytes(as_text(view.bytes())); });
}

void end_file(PlainText& text) {
    run_interruptibly([&] { text.end_file(); });
}

Grammar* take(PlainText& text) {
    auto grammar = std::make_unique<Grammar>();
    run_interruptibly([&] { *grammar = text.take(); });
    return grammar.release();
}

}  // namespace

void bind_plain_text(nb::module_& text) {
    nb::class_<PlainText>(text, "PlainText",
                          "Cuts text that is not stored in parts into words. No two of its methods "
                          "may run at once.")
        .def("__init__", &init, "word_rule"_a, "word_characters"_a, "num_threads"_a,
             "`word_characters` is the bitmap of the characters of words for LETTERS, else "
             "empty.\n\n"
             "Raises ValueError if the bitmap is missing or superfluous.")
        .def("begin_file", &PlainText::begin_file, "ino"_a)
        .def("add_bytes", &add_bytes, "piece"_a)
        .def("end_file", &end_file)
        .def(
            "take", &take, nb::rv_policy::take_ownership,
            "Returns the words of what was added since the last call, as a grammar without "
            "rules.\n\n"
            "If a file has not ended, its rest comes with the next call. An interrupted call loses "
            "words: the object is of no use afterwards.");
}

}  // namespace gompfs
