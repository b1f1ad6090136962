// The function gompfs._native.statistics.row_lines.
#include "statistics/row_lines.h"

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"
#include "common/failures.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using Numbers = Array<std::uint64_t>;

// The rows of a source, and where those of each piece begin, and the last end.
struct Source {
    std::vector<Numbers> held;  // an array may be a copy
    Rows rows;
    std::span<const std::uint64_t> cuts;
};

// Pairs, counts, bits of the second number, cuts, halves of keys.
using GivenSource =
    py::Tuple<Numbers, Numbers, unsigned, Numbers, py::Tuple<Numbers, nb::ellipsis>>;

Source source_of(nb::handle given) {
    Source source;
    const auto numbers = [&](nb::handle array) {
        return as_span(source.held.emplace_back(nb::cast<Numbers>(array)));
    };
    source.rows.pairs = numbers(given[0]);
    source.rows.counts = numbers(given[1]);
    source.rows.second_bits = nb::cast<unsigned>(given[2]);
    source.cuts = numbers(given[3]);
    const auto halves = nb::cast<nb::tuple>(given[4]);  // the highest first
    if (halves.size() > 2 || source.rows.second_bits > 63) {
        throw nb::value_error("a key has at most two halves, and a number at most 63 bits");
    }
    if (halves.size() != 0) {
        source.rows.low = numbers(halves[halves.size() - 1]);
    }
    if (halves.size() == 2) {
        source.rows.high = numbers(halves[0]);
        if (source.rows.high.size() != source.rows.low.size()) {
            throw nb::value_error("the halves of keys differ in number");
        }
    }
    return source;
}

py::List<nb::bytes> row_lines(const Corpus& corpus, PostingsTask task, std::uint64_t top,
                              const Array<std::uint32_t>& files_of_words, std::uint64_t num_files,
                              const py::List<GivenSource>& given, unsigned num_threads) {
    std::vector<Source> sources;
    for (nb::handle source : given) {
        sources.push_back(source_of(source));
        if (sources.back().cuts.empty() ||
            sources.back().cuts.size() != sources.front().cuts.size()) {
            throw nb::value_error("the sources differ in the number of pieces");
        }
    }
    std::vector<std::string> texts(sources.empty() ? 0 : sources.front().cuts.size() - 1);
    run_interruptibly([&] {
        const RowLines lines(corpus, task, top, {as_span(files_of_words), num_files});
        parallel_for_all(texts.size(), num_threads, [&](std::size_t piece) {
            std::vector<Rows> rows;
            for (const Source& source : sources) {
                rows.push_back(source.rows.part(source.cuts[piece], source.cuts[piece + 1]));
            }
            texts[piece] = lines.text(rows);
        });
    });
    py::List<nb::bytes> pieces;
    for (std::string& text : texts) {
        pieces.append(to_bytes(text));
        text = std::string();
    }
    return pieces;
}

}  // namespace

void bind_row_lines(nb::module_& statistics) {
    statistics.def("row_lines", &row_lines, "corpus"_a, "task"_a, "top"_a, "files_of_words"_a,
                   "num_files"_a, "sources"_a, "num_threads"_a,
                   "Returns the lines of rows that are in order already, piece by piece: see "
                   "native/statistics/row_lines.h.\n\n"
                   "A source is (pairs, counts, bits of the second number, cuts, halves of keys): "
                   "piece i has the rows cuts[i] to cuts[i + 1] - 1 of each source. "
                   "`files_of_words` and `num_files` are needed for tf-idf. Raises ValueError if "
                   "numbers of rows are not those of words and files of the corpus. The numbers in "
                   "keys are not checked.");
}

}  // namespace gompfs
