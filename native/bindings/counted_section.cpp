// Word counts in gompfs._native.statistics: of a section (CountedSection), or of a grammar.
#include "bindings/counted_section.h"

#include <nanobind/nanobind.h>

#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/types.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

NewArray<std::uint64_t> count_words(const Grammar& grammar, const Inos& inos,
                                    unsigned num_threads) {
    WordCounts counts;
    const CountedFiles files = counted_files(inos);
    run_interruptibly([&] { counts = word_counts(grammar, files, num_threads); });
    return to_array(std::move(counts));
}

}  // namespace

void bind_counted_section(nb::module_& statistics) {
    nb::class_<HeldSection>(
        statistics, "CountedSection",
        "The words of a section, as it stores them, and their counts. Raises what `read_grammar` "
        "raises.")
        .def(nb::init<const py::Buffer&, const Inos&, unsigned>(), "section"_a, "inos"_a.none(),
             "num_threads"_a, "Counts the words of the files `inos`, or of all files.")
        .def_prop_ro("word_rule",
                     [](const HeldSection& self) { return self.counted().word_rule(); })
        .def_prop_ro(
            "counts",
            [](const HeldSection& self) { return to_view(self, self.counted().counts()); },
            "By word number.");
    statistics.def(
        "word_counts", &count_words, "grammar"_a, "inos"_a.none(), "num_threads"_a,
        "Returns how often each word of the dictionary occurs in the files `inos`, or in all "
        "files.");
}

}  // namespace gompfs
