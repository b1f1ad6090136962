// Functions of gompfs._native.statistics that merge the statistics of several archives.
#include "statistics/merge_lines.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/interruptible.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

// Returns what work() returns, made without the GIL.
template <typename Work>
nb::bytes made_interruptibly(Work&& work) {
    std::string text;
    run_interruptibly([&] { text = work(); });
    return to_bytes(text);
}

nb::bytes merged(const std::vector<nb::bytes>& texts, LineMerge how, std::uint64_t top) {
    std::vector<std::string_view> views;
    for (const nb::bytes& text : texts) {
        views.push_back(as_text(text));
    }
    return made_interruptibly([&] { return merge_lines(views, how, top); });
}

nb::bytes sorted(const nb::bytes& text) {
    return made_interruptibly([view = as_text(text)] { return sort_lines(view); });
}

nb::bytes sorted_by_count(const nb::bytes& text, std::uint64_t top) {
    return made_interruptibly(
        [view = as_text(text), top] { return sort_lines_by_count(view, top); });
}

}  // namespace

void bind_merge_lines(nb::module_& statistics) {
    nb::enum_<LineMerge>(statistics, "LineMerge",
                         "What becomes of lines with the same key, the text before the first tab.")
        .value("ADD_COUNTS", LineMerge::add_counts, "Lines of a term and its count.")
        .value("JOIN_PATHS", LineMerge::join_paths,
               "Lines of a term and paths: the paths are sorted.")
        .value("JOIN_RANKED_PATHS", LineMerge::join_ranked_paths,
               "Lines of a term and fields `count path`: sorted by descending count, then by path.")
        .value("JOIN_FILES", LineMerge::join_files,
               "Lines that begin with a path: the texts have no path in common.");
    statistics.def("merge_lines", &merged, "texts"_a, "how"_a, "top"_a,
                   "Returns one text of the lines of several texts, each sorted by key, with one "
                   "line for each key.\n\n"
                   "`top` above 0 limits the ranked paths of a line. Raises ValueError for texts "
                   "that are not so, or if a sum exceeds 64 bits.");
    statistics.def("sort_lines", &sorted, "text"_a,
                   "Returns lines of a term and its count sorted by term. Raises ValueError.");
    statistics.def("sort_lines_by_count", &sorted_by_count, "text"_a, "top"_a,
                   "Returns lines of a term and its count, given by term, sorted by descending "
                   "count, then by term.\n\n"
                   "`top` above 0 limits the lines. Raises ValueError.");
}

}  // namespace gompfs
