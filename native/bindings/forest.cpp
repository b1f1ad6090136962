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
    nb::class_<Forest> forest(statistics, "Forest", "See native/statistics/forest.h.");
    def_view<&Forest::files>(forest, "files", "By file node: the number of the file.");
    def_view<&Forest::starts>(forest, "starts",
                              "By node: index of its first element; one more at the end.");
    def_view<&Forest::elements>(forest, "elements", "Words, or nodes with bit 31 set.");
    def_view<&Forest::depths>(
        forest, "depths",
        "By node: 0 for files, else 1 + the largest depth of the nodes that use it.");
    def_view<&Forest::heights>(
        forest, "heights",
        "By node: 0 without children, else 1 + the largest height of the children.");
    def_view<&Forest::part_files>(
        forest, "part_files",
        "By part: its file nodes, without one that began in the part before.");
    def_view<&Forest::part_elements>(forest, "part_elements", "By part: its elements.");
    statistics.def(
        "forest_of_corpus", &of_corpus, "corpus"_a, "begin"_a, "end"_a, "join_files"_a,
        "num_threads"_a, nb::rv_policy::take_ownership,
        "Returns the forest of the files `begin` to `end` - 1, counted over the files of all parts "
        "of all grammars.\n\n"
        "With `join_files`, a file that continues in the next part has one node, so that all of "
        "its n-grams are there.");
    statistics.def(
        "forest_of_grammar", &of_grammar, "grammar"_a, "inos"_a.none(), "begin"_a, "end"_a,
        "num_threads"_a, nb::rv_policy::take_ownership,
        "As forest_of_corpus, but words are numbered as in the dictionary, and all files have the "
        "number 0.");
}

}  // namespace gompfs
