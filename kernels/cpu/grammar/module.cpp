// The Python module gompfs._grammar: building, reading and traversing word grammars.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/buffer_view.h"
#include "common/parallel.h"
#include "grammar/builder.h"
#include "grammar/corpus.h"
#include "grammar/forest.h"
#include "grammar/grammar.h"
#include "grammar/report.h"
#include "grammar/statistics.h"
#include "grammar/tokenizer.h"
#include "grammar/tokens.h"
#include "grammar/traversal.h"

namespace nb = nanobind;

namespace gompfs {
namespace {

std::string_view as_text(std::span<const std::uint8_t> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

nb::bytes to_bytes(const auto& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

// Values as an array that Python owns.
template <typename Value>
nb::object to_array(std::vector<Value> values) {
    auto* copy = new std::vector<Value>(std::move(values));
    const nb::capsule owner(
        copy, [](void* held) noexcept { delete static_cast<std::vector<Value>*>(held); });
    return nb::cast(
        nb::ndarray<nb::numpy, Value, nb::ndim<1>>(copy->data(), {copy->size()}, owner));
}

// Values that belong to an object as an array that keeps it.
template <typename Owner, typename Value>
nb::object to_view(const Owner& owner, const std::vector<Value>& values) {
    return nb::cast(nb::ndarray<nb::numpy, const Value, nb::ndim<1>>(values.data(), {values.size()},
                                                                     nb::find(owner)));
}

void add_files(GrammarBuilder& builder, nb::sequence files) {
    const std::size_t count = nb::len(files);
    std::vector<std::pair<std::uint64_t, BufferView>> views;
    views.reserve(count);
    for (std::size_t index = 0; index < count; ++index) {
        const nb::tuple file = nb::cast<nb::tuple>(files[index]);
        views.emplace_back(nb::cast<std::uint64_t>(file[0]), BufferView(file[1], PyBUF_SIMPLE));
    }
    const nb::gil_scoped_release release;
    for (const auto& [ino, view] : views) {
        builder.begin_file(ino);
        builder.add_bytes(as_text(view.bytes()));
        builder.end_file();
    }
}

void add_bytes(GrammarBuilder& builder, nb::handle bytes) {
    const BufferView view(bytes, PyBUF_SIMPLE);
    const nb::gil_scoped_release release;
    builder.add_bytes(as_text(view.bytes()));
}

void finish(GrammarBuilder& builder) {
    const nb::gil_scoped_release release;
    builder.finish();
}

nb::object next_piece(GrammarBuilder& builder) {
    std::optional<std::vector<std::uint8_t>> piece;
    {
        const nb::gil_scoped_release release;
        piece = builder.next_piece();
    }
    return piece ? nb::object(to_bytes(*piece)) : nb::none();
}

// (part numbers, symbols, starts, numbers of words), or None.
nb::object take_words(GrammarBuilder& builder, std::size_t least, std::size_t most) {
    std::optional<PartsInWords> parts;
    {
        const nb::gil_scoped_release release;
        parts = builder.take_words(least, most);
    }
    if (!parts) {
        return nb::none();
    }
    return nb::make_tuple(nb::cast(parts->numbers), to_array(std::move(parts->symbols)),
                          to_array(std::move(parts->starts)),
                          to_array(std::move(parts->num_words)));
}

using Numbers = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig>;

void give_rules(GrammarBuilder& builder, const std::vector<std::size_t>& numbers,
                const Numbers& symbols, const Numbers& ends, const Numbers& places) {
    const nb::gil_scoped_release release;
    builder.give_rules(numbers, {{symbols.data(), symbols.size()},
                                 {ends.data(), ends.size()},
                                 {places.data(), places.size()}});
}

Grammar* read_section(nb::handle section) {
    const BufferView view(section, PyBUF_SIMPLE);
    const nb::gil_scoped_release release;
    return new Grammar(read_grammar(view.bytes()));
}

std::uint64_t size_in_memory(const Grammar& grammar) {
    const auto bytes = [](const auto& values) { return values.size() * sizeof values[0]; };
    std::uint64_t size = bytes(grammar.dictionary.starts) + bytes(grammar.dictionary.bytes);
    for (const Part& part : grammar.parts) {
        size += bytes(part.inos) + bytes(part.words) + bytes(part.rules.starts) +
                bytes(part.rules.symbols);
    }
    return size;
}

Grammar* take_grammar(GrammarBuilder& builder) {
    const nb::gil_scoped_release release;
    return new Grammar(builder.take());
}

template <typename Value>
using Array = nb::ndarray<const Value, nb::ndim<1>, nb::c_contig>;

template <typename Value>
std::span<const Value> as_span(const Array<Value>& array) {
    return {array.data(), array.size()};
}

// `batches` are tuples of continues, inos, ends and words.
Grammar* take_tokens(const Array<std::uint64_t>& starts, const Array<std::uint8_t>& bytes,
                     bool words_of_characters, const Array<std::uint32_t>& ranks, nb::list batches,
                     unsigned num_threads) {
    const auto bounds = as_span(starts);
    if (bounds.empty() || bounds.front() != 0 || bounds.back() != bytes.size() ||
        !std::is_sorted(bounds.begin(), bounds.end())) {
        throw nb::value_error("the words are not in the bytes");
    }
    std::vector<TokenizedFiles> files;
    for (const nb::handle batch : batches) {
        const auto fields = nb::cast<nb::tuple>(batch);
        files.push_back({nb::cast<bool>(fields[0]),
                         as_span(nb::cast<Array<std::uint64_t>>(fields[1])),
                         as_span(nb::cast<Array<std::uint64_t>>(fields[2])),
                         as_span(nb::cast<Array<std::uint32_t>>(fields[3]))});
    }
    const nb::gil_scoped_release release;
    Dictionary dictionary;
    dictionary.starts.assign(bounds.begin(), bounds.end());
    dictionary.bytes.assign(bytes.data(), bytes.data() + bytes.size());
    return new Grammar(grammar_of_tokens(std::move(dictionary), words_of_characters, as_span(ranks),
                                         files, num_threads));
}

nb::tuple part_arrays(const Grammar& grammar, std::size_t index) {
    if (index >= grammar.parts.size()) {
        throw nb::index_error();
    }
    const Part& part = grammar.parts[index];
    return nb::make_tuple(part.continues, part.num_tokens, to_array(part.inos),
                          to_array(part.words), to_array(part.rules.starts),
                          to_array(part.rules.symbols));
}

nb::list grammar_files(const Grammar& grammar, unsigned num_threads) {
    std::vector<std::vector<std::uint64_t>> sizes(grammar.parts.size());
    {
        const nb::gil_scoped_release release;
        parallel_for(sizes.size(), num_threads,
                     [&](std::size_t index) { sizes[index] = file_sizes(grammar.parts[index]); });
    }
    nb::list files;
    for (std::size_t index = 0; index < sizes.size(); ++index) {
        const Part& part = grammar.parts[index];
        files.append(nb::make_tuple(part.continues, to_array(part.inos), to_array(sizes[index])));
    }
    return files;
}

bool words_have_whitespace(const Grammar& grammar) {
    const nb::gil_scoped_release release;
    return has_whitespace({grammar.dictionary.bytes.data(), grammar.dictionary.bytes.size()});
}

nb::object word_starts(
    nb::handle piece, bool in_word,
    const nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig>& positions) {
    const BufferView view(piece, PyBUF_SIMPLE);
    std::vector<std::uint64_t> counts;
    {
        const nb::gil_scoped_release release;
        counts =
            count_word_starts(as_text(view.bytes()), in_word, {positions.data(), positions.size()});
    }
    if (counts.size() != positions.size()) {
        throw nb::value_error("a position is not in the text");
    }
    return to_array(counts);
}

nb::object count_words(const Grammar& grammar, const std::vector<std::uint64_t>& excluded_inos,
                       unsigned num_threads) {
    std::vector<std::uint64_t> counts;
    {
        const nb::gil_scoped_release release;
        counts = word_counts(grammar, excluded_inos, num_threads);
    }
    return to_array(counts);
}

nb::bytes report(nb::sequence grammars, nb::sequence counts, bool by_count) {
    std::vector<std::vector<std::uint64_t>> values;
    std::vector<const Grammar*> pointers;
    for (std::size_t index = 0; index < nb::len(grammars); ++index) {
        pointers.push_back(nb::cast<const Grammar*>(nb::object(grammars[index])));
        const auto array = nb::cast<nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig>>(
            nb::object(counts[index]));
        values.emplace_back(array.data(), array.data() + array.size());
        if (values.back().size() != pointers.back()->dictionary.size()) {
            throw nb::value_error("there is not one count for each word");
        }
    }
    std::string text;
    {
        const nb::gil_scoped_release release;
        std::vector<WordCounts> sources;
        for (std::size_t index = 0; index < values.size(); ++index) {
            sources.push_back({&pointers[index]->dictionary, &values[index]});
        }
        text = word_count_report(sources, by_count);
    }
    return to_bytes(text);
}

// The pieces of a text as one, which are used up.
nb::object join(std::vector<std::string>& pieces, unsigned num_threads) {
    std::vector<std::size_t> starts{0};
    for (const std::string& piece : pieces) {
        starts.push_back(starts.back() + piece.size());
    }
    const auto size = static_cast<Py_ssize_t>(starts.back());
    const nb::object text = nb::steal(PyBytes_FromStringAndSize(nullptr, size));
    if (!text.is_valid()) {
        throw nb::python_error();
    }
    char* const bytes = PyBytes_AS_STRING(text.ptr());
    const nb::gil_scoped_release release;
    parallel_for(pieces.size(), num_threads, [&](std::size_t index) {
        std::copy(pieces[index].begin(), pieces[index].end(), bytes + starts[index]);
        pieces[index] = std::string();
    });
    return text;
}

std::vector<const Grammar*> pointers_to(nb::sequence grammars) {
    std::vector<const Grammar*> pointers;
    for (std::size_t index = 0; index < nb::len(grammars); ++index) {
        pointers.push_back(nb::cast<const Grammar*>(nb::object(grammars[index])));
    }
    return pointers;
}

// `files` are pairs of inode and path.
std::vector<Corpus::File> files_from(nb::sequence files) {
    std::vector<Corpus::File> of_corpus;
    for (std::size_t index = 0; index < nb::len(files); ++index) {
        const nb::tuple file = nb::cast<nb::tuple>(files[index]);
        const nb::bytes path = nb::cast<nb::bytes>(file[1]);
        of_corpus.push_back({nb::cast<std::uint64_t>(file[0]), {path.c_str(), path.size()}});
    }
    return of_corpus;
}

// `traversal` is (sequential, direction, number of threads).
Traversal traversal_from(nb::tuple traversal) {
    return {nb::cast<bool>(traversal[0]), static_cast<Direction>(nb::cast<unsigned>(traversal[1])),
            nb::cast<unsigned>(traversal[2])};
}

nb::object report_task(unsigned task, nb::sequence grammars, nb::sequence files, unsigned n,
                       std::uint64_t top, nb::tuple traversal, std::uint64_t memory_limit) {
    std::vector<const Grammar*> pointers = pointers_to(grammars);
    std::vector<Corpus::File> of_corpus = files_from(files);
    const Traversal how = traversal_from(traversal);
    std::vector<std::string> pieces;
    {
        const nb::gil_scoped_release release;
        const Corpus corpus(std::move(pointers), std::move(of_corpus), n);
        pieces = report_statistics(corpus, static_cast<Task>(task), top, how, memory_limit);
    }
    return join(pieces, how.num_threads);
}

void init_corpus(Corpus* self, nb::sequence grammars, nb::sequence files, unsigned n) {
    std::vector<const Grammar*> pointers = pointers_to(grammars);
    std::vector<Corpus::File> of_corpus = files_from(files);
    const nb::gil_scoped_release release;
    new (self) Corpus(std::move(pointers), std::move(of_corpus), n);
}

Forest* corpus_forest(const Corpus& corpus, std::uint64_t begin, std::uint64_t end,
                      unsigned num_threads) {
    const nb::gil_scoped_release release;
    std::vector<ForestPart> parts;
    for (std::size_t grammar = 0; grammar < corpus.grammars.size(); ++grammar) {
        for (const Part& part : corpus.grammars[grammar]->parts) {
            parts.push_back({&part, &corpus.ranks[grammar]});
        }
    }
    const auto file_number = [&](std::uint64_t ino) { return corpus.file_number(ino); };
    return new Forest(build_forest(parts, begin, end, file_number, num_threads));
}

// Its words are numbered by their places in the dictionary; all files are number 0.
Forest* grammar_forest(const Grammar& grammar, const std::vector<std::uint64_t>& excluded_inos,
                       std::uint64_t begin, std::uint64_t end, unsigned num_threads) {
    const nb::gil_scoped_release release;
    std::vector<ForestPart> parts;
    for (const Part& part : grammar.parts) {
        parts.push_back({&part, nullptr});
    }
    const auto file_number = [&](std::uint64_t ino) {
        return std::binary_search(excluded_inos.begin(), excluded_inos.end(), ino) ? kLeftOut : 0;
    };
    return new Forest(build_forest(parts, begin, end, file_number, num_threads));
}

nb::list part_sizes(const Grammar& grammar) {
    nb::list sizes;
    for (const Part& part : grammar.parts) {
        sizes.append(nb::make_tuple(part.inos.size(), part.rules.symbols.size()));
    }
    return sizes;
}

using NumberRows = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig>;

struct Runs {
    std::vector<Run> runs;
};

// `keys` and `postings` have two numbers a row, laid out as NgramKey and Posting.
void add_run(Runs& runs, const NumberRows& keys, const NumberRows& postings) {
    static_assert(sizeof(NgramKey) == 16 && sizeof(Posting) == 16);
    if (keys.shape(1) != 2 || postings.shape(1) != 2) {
        throw nb::value_error("keys and postings have two numbers each");
    }
    auto of_run = std::make_shared<std::vector<NgramKey>>(keys.shape(0));
    Run run;
    run.postings.resize(postings.shape(0));
    if (!of_run->empty()) {
        std::memcpy(of_run->data(), keys.data(), of_run->size() * sizeof(NgramKey));
    }
    if (!run.postings.empty()) {
        std::memcpy(run.postings.data(), postings.data(), run.postings.size() * sizeof(Posting));
    }
    run.keys = std::move(of_run);
    runs.runs.push_back(std::move(run));
}

std::uint64_t num_postings(const Runs& runs) {
    std::uint64_t number = 0;
    for (const Run& run : runs.runs) {
        number += run.postings.size();
    }
    return number;
}

Runs gather_corpus(const Corpus& corpus, bool per_file, nb::tuple traversal,
                   std::uint64_t memory_limit) {
    const Traversal how = traversal_from(traversal);
    const nb::gil_scoped_release release;
    MemoryBudget budget(memory_limit);
    return {gather_postings(corpus, per_file, how, budget)};
}

nb::object report_corpus(const Corpus& corpus, unsigned task, std::uint64_t top, Runs& runs,
                         unsigned num_threads, std::uint64_t memory_limit) {
    std::vector<std::string> pieces;
    {
        const nb::gil_scoped_release release;
        const auto what = static_cast<Task>(task);
        std::vector<Run> gathered = std::move(runs.runs);
        gathered.push_back(gather_over_edges(corpus, is_per_file(what), num_threads));
        std::erase_if(gathered, [](const Run& run) { return run.postings.empty(); });
        pieces = report_runs(corpus, what, top, std::move(gathered), num_threads, memory_limit);
    }
    return join(pieces, num_threads);
}

}  // namespace

NB_MODULE(_grammar, module) {
    using namespace nb::literals;
    module.doc() = "Word grammars: built, read and traversed on several threads.";
    module.attr("SPLITTER") = kSplitter;
    nb::class_<GrammarBuilder>(module, "GrammarBuilder")
        .def(
            "__init__",
            [](GrammarBuilder* self, unsigned builder, nb::bytes word_characters,
               unsigned num_threads, bool rules_elsewhere) {
                const auto* bytes = static_cast<const std::uint8_t*>(word_characters.data());
                new (self) GrammarBuilder(static_cast<BuilderKind>(builder),
                                          {bytes, bytes + word_characters.size()}, num_threads,
                                          rules_elsewhere);
            },
            "builder"_a, "word_characters"_a, "num_threads"_a, "rules_elsewhere"_a = false)
        .def("add_files", &add_files, "files"_a)
        .def("begin_file", &GrammarBuilder::begin_file, "ino"_a,
             nb::call_guard<nb::gil_scoped_release>())
        .def("add_bytes", &add_bytes, "piece"_a)
        .def("end_file", &GrammarBuilder::end_file)
        .def("take_words", &take_words, "least"_a, "most"_a)
        .def("give_rules", &give_rules, "numbers"_a, "symbols"_a, "ends"_a, "places"_a)
        .def("finish", &finish)
        .def("next_piece", &next_piece)
        .def("take", &take_grammar, nb::rv_policy::take_ownership);
    nb::class_<Forest>(module, "Forest")
        .def_prop_ro("files", [](const Forest& self) { return to_view(self, self.files); })
        .def_prop_ro("starts", [](const Forest& self) { return to_view(self, self.starts); })
        .def_prop_ro("elements", [](const Forest& self) { return to_view(self, self.elements); })
        .def_prop_ro("depths", [](const Forest& self) { return to_view(self, self.depths); })
        .def_prop_ro("heights", [](const Forest& self) { return to_view(self, self.heights); });
    nb::class_<Runs>(module, "Runs")
        .def(nb::init<>())
        .def("add", &add_run, "keys"_a, "postings"_a)
        .def("num_postings", &num_postings);
    nb::class_<Corpus>(module, "Corpus")
        .def("__init__", &init_corpus, "grammars"_a, "files"_a, "n"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("bits", [](const Corpus& self) { return self.bits; })
        .def_prop_ro("num_words", [](const Corpus& self) { return self.words.size(); })
        .def_prop_ro("inner_ranks",
                     [](const Corpus& self) { return to_view(self, self.ranks_before_others()); })
        .def("forest", &corpus_forest, "begin"_a, "end"_a, "num_threads"_a,
             nb::rv_policy::take_ownership)
        .def("gather", &gather_corpus, "per_file"_a, "traversal"_a, "memory_limit"_a)
        .def("report", &report_corpus, "task"_a, "top"_a, "runs"_a, "num_threads"_a,
             "memory_limit"_a);
    nb::class_<Grammar>(module, "Grammar")
        .def_prop_ro("words_of_characters",
                     [](const Grammar& self) { return self.words_of_characters; })
        .def_prop_ro("builder",
                     [](const Grammar& self) { return static_cast<unsigned>(self.builder); })
        .def_prop_ro("num_bytes", &size_in_memory)
        .def("drop_parts", [](Grammar& self) { self.parts = {}; })
        .def_prop_ro("num_words", [](const Grammar& self) { return self.dictionary.size(); })
        .def_prop_ro("num_parts", [](const Grammar& self) { return self.parts.size(); })
        .def(
            "word",
            [](const Grammar& self, std::uint32_t number) {
                if (number >= self.dictionary.size()) {
                    throw nb::index_error();
                }
                return to_bytes(self.dictionary.word(number));
            },
            "number"_a)
        .def("part", &part_arrays, "index"_a)
        .def("files", &grammar_files, "num_threads"_a)
        .def("part_sizes", &part_sizes)
        .def("forest", &grammar_forest, "excluded_inos"_a, "begin"_a, "end"_a, "num_threads"_a,
             nb::rv_policy::take_ownership)
        .def("words_have_whitespace", &words_have_whitespace)
        .def("word_counts", &count_words, "excluded_inos"_a, "num_threads"_a);
    module.def("read_grammar", &read_section, "section"_a, nb::rv_policy::take_ownership);
    module.def("grammar_of_tokens", &take_tokens, "starts"_a, "content"_a, "words_of_characters"_a,
               "ranks"_a, "batches"_a, "num_threads"_a, nb::rv_policy::take_ownership);
    module.def("count_word_starts", &word_starts, "text"_a, "in_word"_a, "positions"_a);
    module.def("word_count_report", &report, "grammars"_a, "counts"_a, "by_count"_a);
    module.def("statistics_report", &report_task, "task"_a, "grammars"_a, "files"_a, "n"_a, "top"_a,
               "traversal"_a, "memory_limit"_a);
}

}  // namespace gompfs
