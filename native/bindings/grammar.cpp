// The Python module gompfs._native.grammar: builds, reads and traverses word grammars.
//
// The functions convert arguments and run the work without the interpreter's lock, interruptible by
// Ctrl-C (common/interruptible.h). Arrays returned to Python either own their values (to_array) or
// keep the C++ object alive (to_view). gompfs/_grammar.pyi documents every class and function.
#include "grammar/grammar.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "common/buffer_view.h"
#include "common/failures.h"
#include "common/interruptible.h"
#include "grammar/builder.h"
#include "grammar/rule_sizes.h"
#include "grammar/text_check.h"
#include "grammar/tokenizer.h"
#include "grammar/tokens.h"
#include "statistics/corpus.h"
#include "statistics/forest.h"
#include "statistics/report.h"
#include "statistics/search.h"
#include "statistics/statistics.h"
#include "statistics/traversal.h"
#include "statistics/word_count_report.h"
#include "statistics/words_report.h"

namespace nb = nanobind;

namespace gompfs {
namespace {

std::string_view as_text(std::span<const std::uint8_t> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

nb::bytes to_bytes(const auto& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

// Returns values, copied or moved, as an array that owns them.
template <typename Values>
nb::object to_array(Values&& values) {
    using Vector = std::remove_cvref_t<Values>;
    auto* copy = new Vector(std::forward<Values>(values));
    const nb::capsule owner(copy, [](void* held) noexcept { delete static_cast<Vector*>(held); });
    return nb::cast(nb::ndarray<nb::numpy, typename Vector::value_type, nb::ndim<1>>(
        copy->data(), {copy->size()}, owner));
}

// Returns values that belong to a C++ object as an array that keeps the object alive.
template <typename Owner, typename Values>
nb::object to_view(const Owner& owner, const Values& values) {
    return nb::cast(nb::ndarray<nb::numpy, const typename Values::value_type, nb::ndim<1>>(
        values.data(), {values.size()}, nb::find(owner)));
}

void add_files(GrammarBuilder& builder, nb::sequence files) {
    const std::size_t count = nb::len(files);
    std::vector<std::pair<std::uint64_t, BufferView>> views;
    views.reserve(count);
    for (std::size_t index = 0; index < count; ++index) {
        const nb::tuple file = nb::cast<nb::tuple>(files[index]);
        views.emplace_back(nb::cast<std::uint64_t>(file[0]), BufferView(file[1], PyBUF_SIMPLE));
    }
    run_interruptibly([&] {
        for (const auto& [ino, view] : views) {
            builder.begin_file(ino);
            builder.add_bytes(as_text(view.bytes()));
            builder.end_file();
        }
    });
}

void add_bytes(GrammarBuilder& builder, nb::handle bytes) {
    const BufferView view(bytes, PyBUF_SIMPLE);
    run_interruptibly([&] { builder.add_bytes(as_text(view.bytes())); });
}

void finish(GrammarBuilder& builder) {
    run_interruptibly([&] { builder.finish(); });
}

nb::object next_piece(GrammarBuilder& builder) {
    std::optional<std::vector<std::uint8_t>> piece;
    run_interruptibly([&] { piece = builder.next_piece(); });
    return piece ? to_array(std::move(*piece)) : nb::none();
}

using Numbers = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig>;

// Returns (part numbers, text, file ends, first files of parts), with the text in an array that
// `allocate` returns for its size; or None.
nb::object take_texts(GrammarBuilder& builder, std::size_t least, std::size_t most,
                      nb::callable allocate, unsigned num_threads) {
    std::optional<PartsInText> parts;
    {
        const nb::gil_scoped_release release;
        parts = builder.take_texts(least, most);
    }
    if (!parts) {
        return nb::none();
    }
    std::vector<std::size_t> numbers;
    for (const auto& text : parts->texts) {
        numbers.push_back(text->number);
    }
    const nb::object text = allocate(parts->size());
    const BufferView view(text, PyBUF_SIMPLE | PyBUF_WRITABLE);
    if (view.bytes().size() != parts->size()) {
        throw nb::value_error("the memory does not have the size of the text");
    }
    {
        const nb::gil_scoped_release release;
        parts->move_to(view.mutable_bytes().data(), num_threads);
    }
    return nb::make_tuple(nb::cast(numbers), text, to_array(std::move(parts->file_ends)),
                          to_array(std::move(parts->part_files)));
}

void give_rules(GrammarBuilder& builder, const std::vector<std::size_t>& numbers,
                const Bytes& word_bytes, const Numbers& word_ends, const Numbers& part_words,
                const Numbers& symbols, const Numbers& rule_ends, const Numbers& part_rules) {
    const nb::gil_scoped_release release;
    builder.give_rules(numbers,
                       {{reinterpret_cast<const char*>(word_bytes.data()), word_bytes.size()},
                        {word_ends.data(), word_ends.size()},
                        {part_words.data(), part_words.size()},
                        {symbols.data(), symbols.size()},
                        {rule_ends.data(), rule_ends.size()},
                        {part_rules.data(), part_rules.size()}});
}

Grammar* read_section(nb::handle section, unsigned num_threads) {
    const BufferView view(section, PyBUF_SIMPLE);
    auto grammar = std::make_unique<Grammar>();
    run_interruptibly([&] { *grammar = read_grammar(view.bytes(), num_threads); });
    return grammar.release();
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
    auto grammar = std::make_unique<Grammar>();
    run_interruptibly([&] { *grammar = builder.take(); });
    return grammar.release();
}

template <typename Value>
using Array = nb::ndarray<const Value, nb::ndim<1>, nb::c_contig>;

template <typename Value>
std::span<const Value> as_span(const Array<Value>& array) {
    return {array.data(), array.size()};
}

// `batches` are tuples of (continues, inos, ends, words).
Grammar* take_tokens(const Array<std::uint64_t>& starts, const Array<std::uint8_t>& bytes,
                     bool words_of_characters, const Array<std::uint32_t>& ranks, nb::list batches,
                     unsigned num_threads) {
    const auto bounds = as_span(starts);
    if (bounds.empty() || bounds.front() != 0 || bounds.back() != bytes.size() ||
        !std::is_sorted(bounds.begin(), bounds.end())) {
        throw nb::value_error("the words are not inside the bytes");
    }
    std::vector<TokenizedFiles> files;
    for (const nb::handle batch : batches) {
        const auto fields = nb::cast<nb::tuple>(batch);
        files.push_back({nb::cast<bool>(fields[0]),
                         as_span(nb::cast<Array<std::uint64_t>>(fields[1])),
                         as_span(nb::cast<Array<std::uint64_t>>(fields[2])),
                         as_span(nb::cast<Array<std::uint32_t>>(fields[3]))});
    }
    auto grammar = std::make_unique<Grammar>();
    run_interruptibly([&] {
        Dictionary dictionary;
        dictionary.starts.assign(bounds.begin(), bounds.end());
        dictionary.bytes.assign(bytes.data(), bytes.data() + bytes.size());
        *grammar = grammar_of_tokens(std::move(dictionary), words_of_characters, as_span(ranks),
                                     files, num_threads);
    });
    return grammar.release();
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
    run_interruptibly([&] {
        parallel_for(sizes.size(), num_threads,
                     [&](std::size_t index) { sizes[index] = file_sizes(grammar.parts[index]); });
    });
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

void check_text(TextCheck& check, nb::handle text) {
    const BufferView view(text, PyBUF_SIMPLE);
    run_interruptibly([&] { check.add(as_text(view.bytes())); });
}

// Returns (index of the word, the word in the text, the word in the grammar), or None.
nb::object end_of_text(TextCheck& check) {
    std::optional<Difference> difference;
    run_interruptibly([&] { difference = check.end(); });
    if (!difference) {
        return nb::none();
    }
    const auto word = [](const std::optional<std::string>& text) -> nb::object {
        return text ? nb::object(to_bytes(*text)) : nb::none();
    };
    return nb::make_tuple(difference->number, word(difference->in_text),
                          word(difference->in_grammar));
}

// Inode numbers, or None for all files.
using Inos = std::optional<Array<std::uint64_t>>;

CountedFiles counted_files(const Inos& inos) {
    return inos ? CountedFiles({inos->data(), inos->data() + inos->size()}) : CountedFiles();
}

nb::object count_words(const Grammar& grammar, const Inos& inos, unsigned num_threads) {
    WordCounts counts;
    const CountedFiles files = counted_files(inos);
    run_interruptibly([&] { counts = word_counts(grammar, files, num_threads); });
    return to_array(std::move(counts));
}

// A section whose words were counted, with its bytes.
class HeldSection {
  public:
    HeldSection(nb::handle section, const Inos& inos, unsigned num_threads)
        : view_(section, PyBUF_SIMPLE) {
        const CountedFiles files = counted_files(inos);
        run_interruptibly([&] { counted_.emplace(view_.bytes(), files, num_threads); });
    }
    const CountedSection& counted() const { return *counted_; }

  private:
    BufferView view_;
    std::optional<CountedSection> counted_;
};

using CountsArray = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig>;

// Each source is a section, or a grammar with an array of counts. Both must stay alive.
Report* report_word_counts(nb::list sources, nb::list counts, bool by_count, std::uint64_t top,
                           unsigned num_threads) {
    std::vector<CountedWords> counted;
    for (std::size_t index = 0; index < nb::len(sources); ++index) {
        CountedWords& words = counted.emplace_back();
        const auto array = nb::cast<CountsArray>(counts[index]);
        words.counts = {array.data(), array.size()};
        if (nb::isinstance<HeldSection>(sources[index])) {
            words.section = &nb::cast<const HeldSection&>(sources[index]).counted();
        } else {
            words.dictionary = &nb::cast<const Grammar&>(sources[index]).dictionary;
        }
        const std::size_t num_words =
            words.section != nullptr ? words.section->words().size() : words.dictionary->size();
        if (words.counts.size() != num_words) {
            throw nb::value_error("the number of counts differs from the number of words");
        }
    }
    std::unique_ptr<Report> report;
    run_interruptibly([&] {
        report = std::make_unique<WordCountReport>(std::move(counted), by_count, top, num_threads);
    });
    return report.release();
}

nb::list make_pieces(const Report& report, std::size_t first, std::size_t count,
                     unsigned num_threads) {
    std::vector<std::string> texts;
    run_interruptibly([&] {
        while (texts.size() < count && report.has_piece(first + texts.size())) {
            texts.emplace_back();
        }
        parallel_for_all(texts.size(), num_threads,
                         [&](std::size_t index) { texts[index] = report.piece(first + index); });
    });
    nb::list pieces;
    for (std::string& text : texts) {
        pieces.append(to_bytes(text));
        text = std::string();
    }
    return pieces;
}

// `files` are pairs of inode and path.
void init_corpus(Corpus* self, nb::list grammars, nb::list files, unsigned n) {
    std::vector<const Grammar*> pointers;
    for (nb::handle grammar : grammars) {
        pointers.push_back(nb::cast<const Grammar*>(grammar));
    }
    std::vector<Corpus::File> of_corpus;
    for (nb::handle file : files) {
        const nb::bytes path = nb::cast<nb::bytes>(file[1]);
        of_corpus.push_back({nb::cast<std::uint64_t>(file[0]), {path.c_str(), path.size()}});
    }
    run_interruptibly([&] { new (self) Corpus(std::move(pointers), std::move(of_corpus), n); });
}

Forest* corpus_forest(const Corpus& corpus, std::uint64_t begin, std::uint64_t end,
                      unsigned num_threads) {
    std::vector<ForestPart> parts;
    for (std::size_t grammar = 0; grammar < corpus.grammars.size(); ++grammar) {
        for (const Part& part : corpus.grammars[grammar]->parts) {
            parts.push_back({&part, corpus.words.ranks(grammar)});
        }
    }
    const auto file_number = [&](std::uint64_t ino) { return corpus.file_number(ino); };
    auto forest = std::make_unique<Forest>();
    run_interruptibly([&] { *forest = build_forest(parts, begin, end, file_number, num_threads); });
    return forest.release();
}

// Words are numbered as in the dictionary; all files have the number 0.
Forest* grammar_forest(const Grammar& grammar, const Inos& inos, std::uint64_t begin,
                       std::uint64_t end, unsigned num_threads) {
    const CountedFiles files = counted_files(inos);
    std::vector<ForestPart> parts;
    for (const Part& part : grammar.parts) {
        parts.push_back({&part, nullptr});
    }
    const auto file_number = [&](std::uint64_t ino) { return files.contains(ino) ? 0 : kLeftOut; };
    auto forest = std::make_unique<Forest>();
    run_interruptibly([&] { *forest = build_forest(parts, begin, end, file_number, num_threads); });
    return forest.release();
}

nb::list part_sizes(const Grammar& grammar) {
    nb::list sizes;
    for (const Part& part : grammar.parts) {
        sizes.append(nb::make_tuple(part.inos.size(), part.rules.symbols.size()));
    }
    return sizes;
}

using NumberRows = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig>;

// Both arrays have two numbers per row: those of `keys` are laid out as NgramKey, those of
// `of_keys` as Posting.
void add_run(Postings& postings, const NumberRows& keys, const NumberRows& of_keys) {
    static_assert(sizeof(NgramKey) == 16 && sizeof(Posting) == 16);
    if (keys.shape(1) != 2 || of_keys.shape(1) != 2) {
        throw nb::value_error("a key and a posting must have two numbers each");
    }
    std::vector<NgramKey> its_keys(keys.shape(0));
    std::vector<Posting> its_postings(of_keys.shape(0));
    if (!its_postings.empty()) {
        std::memcpy(its_keys.data(), keys.data(), its_keys.size() * sizeof(NgramKey));
        std::memcpy(its_postings.data(), of_keys.data(), its_postings.size() * sizeof(Posting));
    }
    run_interruptibly([&] { postings.add(its_keys, its_postings); });
}

void add_over_edges(Postings& postings, const Corpus& corpus, bool per_file, unsigned num_threads) {
    run_interruptibly([&] { gather_over_edges(corpus, per_file, num_threads, postings); });
}

// `traversal` is (sequential, direction, number of threads).
void gather(Postings& postings, const Corpus& corpus, bool per_file, nb::tuple traversal) {
    const Traversal how{nb::cast<bool>(traversal[0]),
                        static_cast<Direction>(nb::cast<unsigned>(traversal[1])),
                        nb::cast<unsigned>(traversal[2])};
    run_interruptibly([&] { gather_postings(corpus, per_file, how, postings); });
}

Report* report_task(const Corpus& corpus, unsigned task, std::uint64_t top, Postings& postings,
                    unsigned num_threads) {
    std::unique_ptr<Report> report;
    run_interruptibly(
        [&] { report = make_report(corpus, static_cast<Task>(task), top, postings, num_threads); });
    return report.release();
}

// Returns pairs of file number and count.
nb::list find_files(const Corpus& corpus, const std::vector<nb::bytes>& words,
                    unsigned num_threads) {
    std::vector<std::string_view> views;
    for (const nb::bytes& word : words) {
        views.emplace_back(word.c_str(), word.size());
    }
    std::vector<FileCount> found;
    run_interruptibly([&] { found = find_ngram(corpus, views, num_threads); });
    nb::list files;
    for (const FileCount& file : found) {
        files.append(nb::make_tuple(file.file, file.count));
    }
    return files;
}

Report* report_words(nb::list grammars, std::uint64_t ino, std::uint64_t begin, std::uint64_t end) {
    std::vector<const Grammar*> pointers;
    for (nb::handle grammar : grammars) {
        pointers.push_back(nb::cast<const Grammar*>(grammar));
    }
    std::unique_ptr<Report> report;
    run_interruptibly([&] { report = std::make_unique<WordsReport>(pointers, ino, begin, end); });
    return report.release();
}

}  // namespace

void bind_grammar(nb::module_& module) {
    using namespace nb::literals;
    module.doc() = "Word grammars: built, read and traversed on several threads.";
    module.attr("SPLITTER") = kSplitter;
    nb::class_<GrammarBuilder>(module, "GrammarBuilder")
        .def(
            "__init__",
            [](GrammarBuilder* self, unsigned builder, nb::bytes word_characters,
               unsigned num_threads, bool elsewhere) {
                const auto* bytes = static_cast<const std::uint8_t*>(word_characters.data());
                new (self)
                    GrammarBuilder(static_cast<BuilderKind>(builder),
                                   {bytes, bytes + word_characters.size()}, num_threads, elsewhere);
            },
            "builder"_a, "word_characters"_a, "num_threads"_a, "elsewhere"_a = false)
        .def("add_files", &add_files, "files"_a)
        .def("begin_file", &GrammarBuilder::begin_file, "ino"_a,
             nb::call_guard<nb::gil_scoped_release>())
        .def("add_bytes", &add_bytes, "piece"_a)
        .def("end_file", &GrammarBuilder::end_file)
        .def("take_texts", &take_texts, "least"_a, "most"_a, "allocate"_a, "num_threads"_a)
        .def("give_rules", &give_rules, "numbers"_a, "word_bytes"_a, "word_ends"_a, "part_words"_a,
             "symbols"_a, "rule_ends"_a, "part_rules"_a)
        .def("finish", &finish)
        .def("next_piece", &next_piece)
        .def("take", &take_grammar, nb::rv_policy::take_ownership);
    nb::class_<Forest>(module, "Forest")
        .def_prop_ro("files", [](const Forest& self) { return to_view(self, self.files); })
        .def_prop_ro("starts", [](const Forest& self) { return to_view(self, self.starts); })
        .def_prop_ro("elements", [](const Forest& self) { return to_view(self, self.elements); })
        .def_prop_ro("depths", [](const Forest& self) { return to_view(self, self.depths); })
        .def_prop_ro("heights", [](const Forest& self) { return to_view(self, self.heights); });
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
        .def("forest", &grammar_forest, "inos"_a.none(), "begin"_a, "end"_a, "num_threads"_a,
             nb::rv_policy::take_ownership)
        .def("words_have_whitespace", &words_have_whitespace)
        .def("has_short_rules", &has_short_rules)
        .def("word_counts", &count_words, "inos"_a.none(), "num_threads"_a);
    module.def("read_grammar", &read_section, "section"_a, "num_threads"_a,
               nb::rv_policy::take_ownership);
    module.def("grammar_of_tokens", &take_tokens, "starts"_a, "content"_a, "words_of_characters"_a,
               "ranks"_a, "batches"_a, "num_threads"_a, nb::rv_policy::take_ownership);
    nb::class_<TextCheck>(module, "TextCheck")
        .def(
            "__init__",
            [](TextCheck* self, const Grammar* grammar, nb::bytes word_characters) {
                const auto* bytes = reinterpret_cast<const std::uint8_t*>(word_characters.c_str());
                new (self) TextCheck(grammar, {bytes, bytes + word_characters.size()});
            },
            "grammar"_a.none(), "word_characters"_a, nb::keep_alive<1, 2>())
        .def("begin", &TextCheck::begin, "pieces"_a)
        .def("add", &check_text, "text"_a)
        .def("end", &end_of_text);
    nb::class_<HeldSection>(module, "CountedSection")
        .def(nb::init<nb::handle, const Inos&, unsigned>(), "section"_a, "inos"_a.none(),
             "num_threads"_a)
        .def_prop_ro("counts", [](const HeldSection& self) {
            return to_view(self, self.counted().counts());
        });
    nb::class_<Report>(module, "Report")
        .def_prop_ro("size", [](const Report& self) { return self.size(); })
        .def("pieces", &make_pieces, "first"_a, "count"_a, "num_threads"_a);
    module.def("word_count_report", &report_word_counts, "sources"_a, "counts"_a, "by_count"_a,
               "top"_a, "num_threads"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(),
               nb::rv_policy::take_ownership);
    nb::class_<Corpus>(module, "Corpus")
        .def("__init__", &init_corpus, "grammars"_a, "files"_a, "n"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("bits", [](const Corpus& self) { return self.bits; })
        .def_prop_ro("num_words", [](const Corpus& self) { return self.words.size(); })
        .def_prop_ro("inner_ranks",
                     [](const Corpus& self) { return to_view(self, self.ranks_before_others()); })
        .def("find_ngram", &find_files, "words"_a, "num_threads"_a)
        .def("forest", &corpus_forest, "begin"_a, "end"_a, "num_threads"_a,
             nb::rv_policy::take_ownership);
    nb::class_<Postings>(module, "Postings")
        .def(
            "__init__",
            [](Postings* self, std::string directory, std::uint64_t in_memory,
               std::uint64_t limit) {
                new (self) Postings(Spill::Place{std::move(directory), in_memory, limit});
            },
            "directory"_a, "in_memory"_a, "limit"_a)
        .def("gather", &gather, "corpus"_a, "per_file"_a, "traversal"_a)
        .def("gather_over_edges", &add_over_edges, "corpus"_a, "per_file"_a, "num_threads"_a)
        .def("add", &add_run, "keys"_a, "postings"_a);
    module.def("report", &report_task, "corpus"_a, "task"_a, "top"_a, "postings"_a, "num_threads"_a,
               nb::keep_alive<0, 1>(), nb::keep_alive<0, 4>(), nb::rv_policy::take_ownership);
    module.def("words_report", &report_words, "grammars"_a, "ino"_a, "begin"_a, "end"_a,
               nb::keep_alive<0, 1>(), nb::rv_policy::take_ownership);
}

}  // namespace gompfs
