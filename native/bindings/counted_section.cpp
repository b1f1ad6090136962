// Word counts in gompfs._native.statistics: of a section (CountedSection), or of a grammar.
#include "bindings/counted_section.h"

#include <nanobind/nanobind.h>

#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

nb::object count_words(const Grammar& grammar, const Inos& inos, unsigned num_threads) {
    WordCounts counts;
    const CountedFiles files = counted_files(inos);
    run_interruptibly([&] { counts = word_counts(grammar, files, num_threads); });
    return to_array(std::move(counts));
}

}  // namespace

void bind_counted_section(nb::module_& statistics) {
    nb::class_<HeldSection>(statistics, "CountedSection")
        .def(nb::init<nb::handle, const Inos&, unsigned>(), "section"_a, "inos"_a.none(),
             "num_threads"_a)
        .def_prop_ro("word_rule",
                     [](const HeldSection& self) { return self.counted().word_rule(); })
        .def_prop_ro("counts", [](const HeldSection& self) {
            return to_view(self, self.counted().counts());
        });
    statistics.def("word_counts", &count_words, "grammar"_a, "inos"_a.none(), "num_threads"_a);
}

}  // namespace gompfs
