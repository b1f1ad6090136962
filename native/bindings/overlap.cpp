// The classes gompfs._native.statistics.NgramSet and Overlap.
#include "statistics/overlap.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/held_parts.h"
#include "bindings/interruptible.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

// The n-grams of documents, and what cuts their texts into words.
struct HeldSet {
    NgramSet set;
    const Tokenizer tokenizer;
};

void init_set(HeldSet* self, unsigned length, WordRule rule, const nb::bytes& word_characters) {
    new (self) HeldSet{NgramSet(length), Tokenizer(rule, as_vector(word_characters))};
}

void add_text(HeldSet& self, const nb::bytes& text) {
    run_interruptibly([&] { self.set.add_text(as_text(text), self.tokenizer); });
}

void add_words(HeldSet& self, const std::vector<nb::bytes>& words) {
    std::vector<std::string_view> views;
    for (const nb::bytes& word : words) {
        views.push_back(as_text(word));
    }
    self.set.add_words(views);
}

void init_overlap(Overlap* self, HeldSet& set, nb::handle inos, std::string directory,
                  std::uint64_t in_memory, std::uint64_t limit) {
    run_interruptibly([&] { set.set.finish(); });
    new (self) Overlap(set.set, values_of<std::uint64_t>(inos),
                       Spill::Options{std::move(directory), in_memory, limit});
}

void search_grammar(Overlap& overlap, const Grammar& grammar, unsigned num_threads) {
    run_interruptibly([&] { overlap.search_grammar(grammar, num_threads); });
}

void search_parts(Overlap& overlap, const nb::tuple& parts, nb::handle extents,
                  nb::handle word_section, std::uint64_t max_word_bytes, WordRule word_rule,
                  const nb::bytes& word_characters, unsigned num_threads) {
    const HeldParts held(parts, extents, word_section, max_word_bytes, word_rule, word_characters);
    run_interruptibly([&] {
        overlap.search_parts(held.parts, held.extents, held.words, held.max_word_bytes,
                             held.tokenizer, num_threads);
    });
}

nb::list finish(Overlap& overlap, std::uint64_t max_files) {
    std::vector<DocumentOverlap> documents;
    run_interruptibly([&] { documents = overlap.finish(max_files); });
    nb::list result;
    for (const DocumentOverlap& document : documents) {
        nb::list files;
        for (const FileOverlap& file : document.files) {
            files.append(nb::make_tuple(file.file, file.num_ngrams, file.count));
        }
        result.append(nb::make_tuple(document.num_found, document.count, files));
    }
    return result;
}

}  // namespace

void bind_overlap(nb::module_& statistics) {
    nb::class_<HeldSet>(statistics, "NgramSet")
        .def("__init__", &init_set, "length"_a, "word_rule"_a, "word_characters"_a)
        .def("add_text", &add_text, "text"_a)
        .def("add_words", &add_words, "words"_a)
        .def("num_ngrams", [](const HeldSet& self, std::uint32_t document) {
            return self.set.ngrams_of(document).size();
        });
    nb::class_<Overlap>(statistics, "Overlap")
        .def("__init__", &init_overlap, "ngrams"_a, "inos"_a, "directory"_a, "in_memory"_a,
             "limit"_a, nb::keep_alive<1, 2>())
        .def("search_grammar", &search_grammar, "grammar"_a, "num_threads"_a)
        .def("search_parts", &search_parts, "parts"_a, "extents"_a, "word_section"_a,
             "max_word_bytes"_a, "word_rule"_a, "word_characters"_a, "num_threads"_a)
        .def("finish", &finish, "max_files"_a);
}

}  // namespace gompfs
