// The class gompfs._native.statistics.Corpus.
#include "statistics/corpus.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

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
void init(Corpus* self, const std::vector<const Grammar*>& grammars, nb::list files,
          unsigned ngram_length) {
    std::vector<Corpus::File> of_corpus;
    for (nb::handle file : files) {
        of_corpus.push_back(
            {nb::cast<std::uint64_t>(file[0]), std::string(as_text(nb::cast<nb::bytes>(file[1])))});
    }
    run_interruptibly([&] { new (self) Corpus(grammars, std::move(of_corpus), ngram_length); });
}

}  // namespace

void bind_corpus(nb::module_& statistics) {
    nb::class_<Corpus>(statistics, "Corpus")
        .def("__init__", &init, "grammars"_a, "files"_a, "ngram_length"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("bits", [](const Corpus& self) { return self.bits; })
        .def_prop_ro("num_words", [](const Corpus& self) { return self.words.size(); })
        .def_prop_ro("inner_ranks",
                     [](const Corpus& self) { return to_view(self, self.ranks_before_others()); });
}

}  // namespace gompfs
