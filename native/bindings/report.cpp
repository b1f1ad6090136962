// The class gompfs._native.statistics.Report, the tasks, and the functions that make reports.
#include "statistics/report.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/counted_files.h"
#include "bindings/held_parts.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"
#include "common/failures.h"
#include "statistics/parts_word_counts.h"
#include "statistics/task_report.h"
#include "statistics/word_count_report.h"
#include "statistics/word_counts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

py::List<nb::bytes> make_pieces(const Report& report, std::size_t first, std::size_t count,
                                unsigned num_threads) {
    std::vector<std::string> texts;
    run_interruptibly([&] {
        while (texts.size() < count && report.has_piece(first + texts.size())) {
            texts.emplace_back();
        }
        parallel_for_all(texts.size(), num_threads,
                         [&](std::size_t index) { texts[index] = report.piece(first + index); });
    });
    py::List<nb::bytes> pieces;
    for (std::string& text : texts) {
        pieces.append(to_bytes(text));
        text = std::string();
    }
    return pieces;
}

Report* of_task(const Corpus& corpus, PostingsTask task, std::uint64_t top, Postings& postings,
                unsigned num_threads) {
    std::unique_ptr<Report> report;
    run_interruptibly([&] { report = make_report(corpus, task, top, postings, num_threads); });
    return report.release();
}

NewArray<std::uint64_t> count_words(const Grammar& grammar, const Inos& inos,
                                    unsigned num_threads) {
    WordCounts counts;
    const CountedFiles files = counted_files(inos);
    run_interruptibly([&] { counts = word_counts(grammar, files, num_threads); });
    return to_array(std::move(counts));
}

// The grammars must stay alive.
Report* of_word_counts(const std::vector<const Grammar*>& grammars,
                       const std::vector<Array<std::uint64_t>>& counts, bool by_count,
                       std::uint64_t top, unsigned num_threads) {
    if (grammars.size() != counts.size()) {
        throw nb::value_error("the number of grammars differs from the number of arrays");
    }
    std::vector<const Dictionary*> dictionaries;
    std::vector<std::span<const std::uint64_t>> spans;
    for (std::size_t index = 0; index < counts.size(); ++index) {
        dictionaries.push_back(&grammars[index]->dictionary);
        spans.push_back(as_span(counts[index]));
    }
    std::unique_ptr<Report> report;
    run_interruptibly([&] {
        report = std::make_unique<WordCountReport>(
            std::make_shared<const GrammarWordCounts>(dictionaries, spans, num_threads), by_count,
            top, num_threads);
    });
    return report.release();
}

Report* of_parts(const StoredText& parts, const py::Buffer& extents, const py::Buffer& word_section,
                 std::uint64_t max_word_bytes, WordRule word_rule, const nb::bytes& word_characters,
                 const Inos& inos, bool by_count, std::uint64_t top, unsigned num_threads) {
    const HeldParts held(parts, extents, word_section, max_word_bytes, word_rule, word_characters);
    const CountedFiles files = counted_files(inos);
    std::unique_ptr<Report> report;
    run_interruptibly([&] {
        auto counts = std::make_shared<const PartsWordCounts>(held.parts, held.extents, held.words,
                                                              held.max_word_bytes, held.tokenizer,
                                                              files, num_threads);
        report = std::make_unique<WordCountReport>(std::move(counts), by_count, top, num_threads);
    });
    return report.release();
}

void check_words(const StoredText& parts, const py::Buffer& extents, const py::Buffer& word_section,
                 std::uint64_t max_word_bytes, WordRule word_rule, const nb::bytes& word_characters,
                 unsigned num_threads) {
    const HeldParts held(parts, extents, word_section, max_word_bytes, word_rule, word_characters);
    run_interruptibly([&] {
        PartsWordCounts(held.parts, held.extents, held.words, held.max_word_bytes, held.tokenizer,
                        CountedFiles(), num_threads)
            .check_that_words_differ();
    });
}

}  // namespace

void bind_report(nb::module_& statistics) {
    nb::enum_<PostingsTask>(statistics, "PostingsTask", "A statistic of n-grams and files.")
        .value("INVERTED_INDEX", PostingsTask::inverted_index,
               "The files that contain each word (TADOC section 4).")
        .value("TERM_VECTOR", PostingsTask::term_vector,
               "The words of each file with their counts (TADOC section 4).")
        .value("SEQUENCE_COUNT", PostingsTask::sequence_count,
               "How often each n-gram occurs (TADOC section 4, G-TADOC section 4.3).")
        .value(
            "RANKED_INVERTED_INDEX", PostingsTask::ranked_inverted_index,
            "The files that contain each n-gram, by count (TADOC section 4, G-TADOC section 4.3).")
        .value("TFIDF", PostingsTask::tfidf,
               "The words that are typical of each file. Not a task of TADOC.");
    nb::class_<Report>(statistics, "Report", "A text that is made in pieces.")
        .def_prop_ro(
            "size", [](const Report& self) { return self.size(); },
            "Size of the text in bytes; None if it is not known before the text is made.")
        .def(
            "pieces", &make_pieces, "first"_a, "count"_a, "num_threads"_a,
            "Returns up to `count` pieces from `first` on; fewer at the end. The first piece alone "
            "may be much faster.");
    statistics.def(
        "task_report", &of_task, "corpus"_a, "task"_a, "top"_a, "postings"_a, "num_threads"_a,
        nb::keep_alive<0, 1>(), nb::keep_alive<0, 4>(), nb::rv_policy::take_ownership,
        "Returns the lines of a task. Raises ValueError above the limit of the postings, OSError.");
    statistics.def(
        "word_counts", &count_words, "grammar"_a, "inos"_a.none(), "num_threads"_a,
        "Returns how often each word of the dictionary occurs in the files `inos`, or in all "
        "files.");
    statistics.def(
        "word_count_report", &of_word_counts, "grammars"_a, "counts"_a, "by_count"_a, "top"_a,
        "num_threads"_a, nb::keep_alive<0, 1>(), nb::rv_policy::take_ownership,
        "Returns lines of word, tab and count, with the counts of all grammars added.\n\n"
        "Raises ValueError if there is not a count for each word of a grammar, or if "
        "there are 2^62 words or more.");
    statistics.def("parts_word_count_report", &of_parts, "parts"_a, "extents"_a, "word_section"_a,
                   "max_word_bytes"_a, "word_rule"_a, "word_characters"_a, "inos"_a.none(),
                   "by_count"_a, "top"_a, "num_threads"_a, nb::rv_policy::take_ownership,
                   "Returns lines of word, tab and count, of text that is stored in parts: see "
                   "gompfs._native.text.read_segment_grammar.\n\n"
                   "Only the files `inos` are counted, or all. Raises ValueError, naming what is "
                   "wrong.");
    statistics.def("check_words_of_parts", &check_words, "parts"_a, "extents"_a, "word_section"_a,
                   "max_word_bytes"_a, "word_rule"_a, "word_characters"_a, "num_threads"_a,
                   "Compares the words that are stored in parts with the words of their text, and "
                   "with each other: see gompfs._native.text.read_segment_grammar. Raises "
                   "ValueError, naming what is wrong.");
}

}  // namespace gompfs
