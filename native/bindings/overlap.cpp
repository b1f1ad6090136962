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
#include "bindings/types.h"

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

void init_overlap(Overlap* self, HeldSet& set, const py::Buffer& inos, std::string directory,
                  std::uint64_t in_memory, std::uint64_t limit) {
    run_interruptibly([&] { set.set.finish(); });
    new (self) Overlap(set.set, values_of<std::uint64_t>(inos),
                       Spill::Options{std::move(directory), in_memory, limit});
}

void search_grammar(Overlap& overlap, const Grammar& grammar, unsigned num_threads) {
    run_interruptibly([&] { overlap.search_grammar(grammar, num_threads); });
}

void search_parts(Overlap& overlap, const StoredText& parts, const py::Buffer& extents,
                  const py::Buffer& word_section, std::uint64_t max_word_bytes, WordRule word_rule,
                  const nb::bytes& word_characters, unsigned num_threads) {
    const HeldParts held(parts, extents, word_section, max_word_bytes, word_rule, word_characters);
    run_interruptibly([&] {
        overlap.search_parts(held.parts, held.extents, held.words, held.max_word_bytes,
                             held.tokenizer, num_threads);
    });
}

// (index in `inos`, number of n-grams, how often)
using FileResult = py::Tuple<std::uint32_t, std::uint64_t, std::uint64_t>;
using DocumentResult = py::Tuple<std::uint64_t, std::uint64_t, py::List<FileResult>>;

py::List<DocumentResult> finish(Overlap& overlap, std::uint64_t max_files) {
    std::vector<DocumentOverlap> documents;
    run_interruptibly([&] { documents = overlap.finish(max_files); });
    py::List<DocumentResult> result;
    for (const DocumentOverlap& document : documents) {
        py::List<FileResult> files;
        for (const FileOverlap& file : document.files) {
            files.append(nb::make_tuple(file.file, file.num_ngrams, file.count));
        }
        result.append(nb::make_tuple(document.num_found, document.count, files));
    }
    return result;
}

}  // namespace

void bind_overlap(nb::module_& statistics) {
    nb::class_<HeldSet>(statistics, "NgramSet",
                        "The n-grams of documents: `length` words each, 1 to 255.")
        .def("__init__", &init_set, "length"_a, "word_rule"_a, "word_characters"_a,
             "The word rule says what the words of a text are. Raises ValueError for an invalid "
             "length.")
        .def("add_text", &add_text, "text"_a,
             "Adds a document. Raises ValueError if all documents have 2^31 words or more.")
        .def("add_words", &add_words, "words"_a, "Adds a document that consists of these words.")
        .def(
            "num_ngrams",
            [](const HeldSet& self, std::uint32_t document) {
                return self.set.ngrams_of(document).size();
            },
            "document"_a,
            "Returns the number of different n-grams of a document. Only after an Overlap was "
            "made.");
    nb::class_<Overlap>(statistics, "Overlap",
                        "How often the n-grams of a set occur in files: see "
                        "native/statistics/overlap.h.")
        .def("__init__", &init_overlap, "ngrams"_a, "inos"_a, "directory"_a, "in_memory"_a,
             "limit"_a, nb::keep_alive<1, 2>(),
             "Searches the files `inos` (u64). No document can be added to the set any more.\n\n"
             "Uses `limit` bytes at most for what it finds: `in_memory` bytes, and the rest in a "
             "file in `directory`.")
        .def("search_grammar", &search_grammar, "grammar"_a, "num_threads"_a,
             "Searches a grammar. Calls are in the order of the text. Raises ValueError above the "
             "limit, OSError.")
        .def("search_parts", &search_parts, "parts"_a, "extents"_a, "word_section"_a,
             "max_word_bytes"_a, "word_rule"_a, "word_characters"_a, "num_threads"_a,
             "Searches text that is stored in parts: see "
             "gompfs._native.text.read_segment_grammar.\n\n"
             "Raises what search_grammar raises, and ValueError for damage.")
        .def("finish", &finish, "max_files"_a,
             "Returns for each document: how many of its n-grams occur, how often, and the files "
             "with most of them.\n\n"
             "A file is given as its index in `inos`, the number of different n-grams of the "
             "document that it has, and how often it has them. Files are sorted by descending "
             "numbers, then by index; each document has up to `max_files`. Nothing can be searched "
             "after it.");
}

}  // namespace gompfs
