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

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

// `files` are pairs of inode and path.
std::vector<Corpus::File> files_of(const nb::list& files) {
    std::vector<Corpus::File> of_corpus;
    for (nb::handle file : files) {
        of_corpus.push_back(
            {nb::cast<std::uint64_t>(file[0]), std::string(as_text(nb::cast<nb::bytes>(file[1])))});
    }
    return of_corpus;
}

void init(Corpus* self, const std::vector<const Grammar*>& grammars, const nb::list& files,
          unsigned ngram_length) {
    std::vector<Corpus::File> of_corpus = files_of(files);
    run_interruptibly([&] { new (self) Corpus(grammars, std::move(of_corpus), ngram_length); });
}

Corpus* with_files(const Corpus& self, const nb::list& files, unsigned ngram_length) {
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

// The rank of a word, or none.
std::optional<std::uint32_t> rank_of(const Corpus& self, const nb::bytes& word) {
    const std::uint32_t rank = self.words.lower_bound(as_text(word));
    const bool is_found = rank < self.words.size() && self.words.word(rank) == as_text(word);
    return is_found ? std::optional(rank) : std::nullopt;
}

// The ranks of the words of a grammar, by their numbers.
nb::object ranks_of(const Corpus& self, std::size_t grammar) {
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

// The size of each word in bytes, by rank.
nb::object word_sizes(const Corpus& self) {
    std::vector<std::uint32_t> sizes(self.words.size());
    for (std::uint32_t rank = 0; rank < sizes.size(); ++rank) {
        sizes[rank] = static_cast<std::uint32_t>(self.words.word(rank).size());
    }
    return to_array(std::move(sizes));
}

nb::bytes lines(const Corpus& self, const Array<std::uint32_t>& ranks,
                const Array<std::uint64_t>& counts) {
    const auto words = as_span(ranks);
    const auto is_word = [&](std::uint32_t rank) { return rank < self.words.size(); };
    if (ranks.size() != counts.size() || !std::all_of(words.begin(), words.end(), is_word)) {
        throw nb::value_error("there must be a word and a count for each line");
    }
    std::string text;
    run_interruptibly([&] { text = self.lines(words, as_span(counts)); });
    return to_bytes(text);
}

}  // namespace

void bind_corpus(nb::module_& statistics) {
    nb::class_<Corpus>(statistics, "Corpus")
        .def("__init__", &init, "grammars"_a, "files"_a, "ngram_length"_a, nb::keep_alive<1, 2>())
        .def("with_files", &with_files, "files"_a, "ngram_length"_a, nb::keep_alive<0, 1>(),
             nb::rv_policy::take_ownership)
        .def("word", &word, "rank"_a)
        .def("rank_of", &rank_of, "word"_a)
        .def("ranks_of", &ranks_of, "grammar"_a)
        .def("word_sizes", &word_sizes)
        .def("lines", &lines, "ranks"_a, "counts"_a)
        .def_prop_ro("bits", [](const Corpus& self) { return self.bits; })
        .def_prop_ro("num_words", [](const Corpus& self) { return self.words.size(); })
        .def_prop_ro("inner_ranks",
                     [](const Corpus& self) { return to_view(self, self.ranks_before_others()); });
}

}  // namespace gompfs
