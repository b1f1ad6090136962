// The class gompfs._native.statistics.Corpus.
#include "statistics/corpus.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/interruptible.h"
#include "statistics/search.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

// `files` are pairs of inode and path.
void init(Corpus* self, const std::vector<const Grammar*>& grammars, nb::list files,
          unsigned ngram_length) {
    std::vector<Corpus::File> of_corpus;
    for (nb::handle file : files) {
        of_corpus.push_back(
            {nb::cast<std::uint64_t>(file[0]), std::string(as_text(nb::cast<nb::bytes>(file[1])))});
    }
    run_interruptibly([&] { new (self) Corpus(grammars, std::move(of_corpus), ngram_length); });
}

// Returns pairs of file number and count.
nb::list find_files(const Corpus& corpus, const std::vector<nb::bytes>& words,
                    unsigned num_threads) {
    std::vector<std::string_view> views;
    for (const nb::bytes& word : words) {
        views.push_back(as_text(word));
    }
    std::vector<FileCount> found;
    run_interruptibly([&] { found = find_ngram(corpus, views, num_threads); });
    nb::list files;
    for (const FileCount& file : found) {
        files.append(nb::make_tuple(file.file, file.count));
    }
    return files;
}

}  // namespace

void bind_corpus(nb::module_& statistics) {
    nb::class_<Corpus>(statistics, "Corpus")
        .def("__init__", &init, "grammars"_a, "files"_a, "ngram_length"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("bits", [](const Corpus& self) { return self.bits; })
        .def_prop_ro("num_words", [](const Corpus& self) { return self.words.size(); })
        .def_prop_ro("inner_ranks",
                     [](const Corpus& self) { return to_view(self, self.ranks_before_others()); })
        .def("find_ngram", &find_files, "words"_a, "num_threads"_a);
}

}  // namespace gompfs
