// The class gompfs._native.statistics.Forest, and the functions that make forests.
#include "statistics/forest.h"

#include <nanobind/nanobind.h>

#include <memory>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/counted_files.h"
#include "bindings/interruptible.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

Forest* of_corpus(const Corpus& corpus, std::uint64_t begin, std::uint64_t end, bool join_files,
                  unsigned num_threads) {
    auto forest = std::make_unique<Forest>();
    run_interruptibly(
        [&] { *forest = forest_of_corpus(corpus, begin, end, join_files, num_threads); });
    return forest.release();
}

Forest* of_grammar(const Grammar& grammar, const Inos& inos, std::uint64_t begin, std::uint64_t end,
                   unsigned num_threads) {
    const CountedFiles files = counted_files(inos);
    auto forest = std::make_unique<Forest>();
    run_interruptibly(
        [&] { *forest = forest_of_grammar(grammar, files, begin, end, num_threads); });
    return forest.release();
}

}  // namespace

void bind_forest(nb::module_& statistics) {
    nb::class_<Forest>(statistics, "Forest")
        .def_prop_ro("files", [](const Forest& self) { return to_view(self, self.files); })
        .def_prop_ro("starts", [](const Forest& self) { return to_view(self, self.starts); })
        .def_prop_ro("elements", [](const Forest& self) { return to_view(self, self.elements); })
        .def_prop_ro("depths", [](const Forest& self) { return to_view(self, self.depths); })
        .def_prop_ro("heights", [](const Forest& self) { return to_view(self, self.heights); })
        .def_prop_ro("part_files",
                     [](const Forest& self) { return to_view(self, self.part_files); })
        .def_prop_ro("part_elements",
                     [](const Forest& self) { return to_view(self, self.part_elements); });
    statistics.def("forest_of_corpus", &of_corpus, "corpus"_a, "begin"_a, "end"_a, "join_files"_a,
                   "num_threads"_a, nb::rv_policy::take_ownership);
    statistics.def("forest_of_grammar", &of_grammar, "grammar"_a, "inos"_a.none(), "begin"_a,
                   "end"_a, "num_threads"_a, nb::rv_policy::take_ownership);
}

}  // namespace gompfs
