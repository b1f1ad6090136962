// The class gompfs._native.statistics.Corpus.
#include "statistics/corpus.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using InodeAndPath = py::Tuple<std::uint64_t, nb::bytes>;

std::vector<Corpus::File> files_of(const py::Sequence<InodeAndPath>& files) {
    std::vector<Corpus::File> of_corpus;
    for (nb::handle file : files) {
        of_corpus.push_back(
            {nb::cast<std::uint64_t>(file[0]), std::string(as_text(nb::cast<nb::bytes>(file[1])))});
    }
    return of_corpus;
}

void init(Corpus* self, const std::vector<const Grammar*>& grammars,
          const py::Sequence<InodeAndPath>& files, unsigned ngram_length) {
    std::vector<Corpus::File> of_corpus = files_of(files);
    run_interruptibly([&] { new (self) Corpus(grammars, std::move(of_corpus), ngram_length); });
}

Corpus* with_files(const Corpus& self, const py::Sequence<InodeAndPath>& files,
                   unsigned ngram_length) {
    std::vector<Corpus::File> of_corpus = files_of(files);
    std::unique_ptr<Corpus> made;
    run_interruptibly(
        [&] { made = std::make_unique<Corpus>(self, std::move(of_corpus), ngram_length); });
    return made.release();
}

nb::bytes word(const Corpus& self, std::uint32_t rank) {
    if (rank >= self.words.size()) {
        throw nb::index_error("there is no such word");
    }
    return to_bytes(self.words.word(rank));
}

std::optional<std::uint32_t> rank_of(const Corpus& self, const nb::bytes& word) {
    const std::uint32_t rank = self.words.lower_bound(as_text(word));
    const bool is_found = rank < self.words.size() && self.words.word(rank) == as_text(word);
    return is_found ? std::optional(rank) : std::nullopt;
}

NewArray<std::uint32_t> ranks_of(const Corpus& self, std::size_t grammar) {
    if (grammar >= self.grammars.size()) {
        throw nb::index_error("there is no such grammar");
    }
    const std::vector<std::uint32_t>* const ranks = self.words.ranks(grammar);
    if (ranks != nullptr) {
        return to_array(*ranks);
    }
    std::vector<std::uint32_t> same(self.words.size());
    std::iota(same.begin(), same.end(), std::uint32_t{0});
    return to_array(std::move(same));
}

NewArray<std::uint32_t> word_sizes(const Corpus& self) {
    std::vector<std::uint32_t> sizes(self.words.size());
    for (std::uint32_t rank = 0; rank < sizes.size(); ++rank) {
        sizes[rank] = static_cast<std::uint32_t>(self.words.word(rank).size());
    }
    return to_array(std::move(sizes));
}

using Numbers = Array<std::uint64_t>;

// Returns what a method of a corpus makes of numbers below `limit`, and of a count for each.
nb::bytes text_of(const Corpus& corpus, const Numbers& numbers, std::uint64_t limit,
                  const Numbers& counts, decltype(&Corpus::items) method) {
    const auto given = as_span(numbers);
    const auto exists = [&](std::uint64_t number) { return number < limit; };
    if (numbers.size() != counts.size() || !std::all_of(given.begin(), given.end(), exists)) {
        throw nb::value_error("there must be a number that exists for each count");
    }
    std::string text;
    run_interruptibly([&] { text = (corpus.*method)(given, as_span(counts)); });
    return to_bytes(text);
}

nb::bytes items(const Corpus& self, const Numbers& ranks, const Numbers& counts) {
    return text_of(self, ranks, self.words.size(), counts, &Corpus::items);
}

nb::bytes file_lines(const Corpus& self, const Numbers& files, const Numbers& counts) {
    return text_of(self, files, self.files.size(), counts, &Corpus::file_lines);
}

}  // namespace

void bind_corpus(nb::module_& statistics) {
    nb::class_<Corpus>(
        statistics, "Corpus",
        "The grammars of all segments as one text, for n-grams of `ngram_length` words.\n\n"
        "`files` are pairs of inode and path. Raises ValueError if there are too many words for "
        "n-grams of that length.")
        .def("__init__", &init, "grammars"_a, "files"_a, "ngram_length"_a, nb::keep_alive<1, 2>())
        .def("with_files", &with_files, "files"_a, "ngram_length"_a, nb::keep_alive<0, 1>(),
             nb::rv_policy::take_ownership,
             "Returns the same words with other files, and n-grams of another length.\n\n"
             "Shares the words. The parts of the grammars may have been dropped.")
        .def("word", &word, "rank"_a, "Returns a word by its number. Raises IndexError.")
        .def("rank_of", &rank_of, "word"_a,
             "Returns the number of a word, or None if no grammar has it.")
        .def("ranks_of", &ranks_of, "grammar"_a,
             "Returns the numbers of the words of a grammar, given by its index, in the order of "
             "its dictionary.")
        .def("word_sizes", &word_sizes, "Returns the size of each word in bytes, by its number.")
        .def("items", &items, "ranks"_a, "counts"_a,
             "Returns items of a term vector: tab, count, space and word, given by its number. "
             "Raises ValueError.")
        .def("file_lines", &file_lines, "files"_a, "counts"_a,
             "Returns lines of a path, tab and count, for files given by their numbers. Raises "
             "ValueError.")
        .def_prop_ro(
            "bits", [](const Corpus& self) { return self.bits; },
            "Bits of a word in the key of an n-gram.")
        .def_prop_ro(
            "num_words", [](const Corpus& self) { return self.words.size(); },
            "Number of distinct words.")
        .def_prop_ro(
            "inner_ranks",
            [](const Corpus& self) { return to_view(self, self.ranks_before_others()); },
            "By word: its rank in front of other words; empty if that is the word's number.");
}

}  // namespace gompfs
