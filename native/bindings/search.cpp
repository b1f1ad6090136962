// The Python module gompfs._native.search: searches the files of an archive for a pattern.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/held_file_rows.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"
#include "blocks/block_reader.h"
#include "common/cancellation.h"
#include "search/archive_search.h"
#include "search/files/file_filter.h"
#include "search/files/file_list.h"
#include "search/files/path_globs.h"
#include "search/gpu/scan_table.h"
#include "search/gpu/scanned_blocks.h"
#include "search/grammar/grammar_scan.h"
#include "search/grammar/line_automaton.h"
#include "search/match/matcher.h"
#include "search/match/search_memory.h"
#include "search/window_search.h"
#include "text/part_heads.h"
#include "text/word_rule.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using search::SearchOptions;

std::string string_of(nb::handle bytes) {
    const auto value = nb::cast<nb::bytes>(bytes);
    return {value.c_str(), value.size()};
}

template <typename Value>
std::vector<Value> values_of(const nb::bytes& column) {
    std::vector<Value> values(column.size() / sizeof(Value));
    std::memcpy(values.data(), column.c_str(), values.size() * sizeof(Value));
    return values;
}

// Reads an option from Python: a text as str, bytes as bytes, EncodingTables of
// gompfs/search/encodings.py.
template <typename Number>
void read_option(nb::handle value, Number& option) {
    option = nb::cast<Number>(value);
}

void read_option(nb::handle value, std::optional<std::string>& option) {
    option = value.is_none() ? std::nullopt : std::optional(string_of(value));
}

void read_option(nb::handle values, std::vector<std::string>& option) {
    for (const nb::handle value : nb::cast<nb::sequence>(values)) {
        option.push_back(string_of(value));
    }
}

void read_option(nb::handle values, std::vector<std::pair<std::string, std::string>>& option) {
    for (const nb::handle pair : nb::cast<nb::sequence>(values)) {
        option.emplace_back(string_of(pair[nb::int_(0)]), string_of(pair[nb::int_(1)]));
    }
}

void read_option(nb::handle tables, std::shared_ptr<const search::TextEncoding>& option) {
    using Kind = search::TextEncoding::Kind;
    if (tables.is_none()) {
        return;
    }
    const auto table = [&](const char* name) {
        return values_of<std::uint32_t>(nb::cast<nb::bytes>(tables.attr(name)));
    };
    const std::string kind = nb::cast<std::string>(tables.attr("kind"));
    auto encoding = std::make_shared<search::TextEncoding>();
    encoding->kind = kind == "utf-8"         ? Kind::utf8
                     : kind == "iso-2022-jp" ? Kind::iso_2022_jp
                     : kind == "utf-16le"    ? Kind::utf16_little
                     : kind == "utf-16be"    ? Kind::utf16_big
                                             : Kind::table;
    encoding->singles = table("singles");
    encoding->pairs = table("pairs");
    encoding->triples = table("triples");
    encoding->quads = table("quads");
    encoding->check();
    option = std::move(encoding);
}

using Options = nb::typed<nb::mapping, nb::str, nb::object>;

// Reads options that have the names of the members of a struct.
template <typename Struct>
Struct options_of(const Options& values) {
    Struct options;
    options.for_each([&](const char* name, auto& option) { read_option(values[name], option); });
    return options;
}

SearchOptions search_options_of(const Options& values, const search::Matcher& matcher) {
    auto options = options_of<SearchOptions>(values);
    options.is_multi_line = matcher.is_multi_line();
    return options;
}

void make_matcher(search::Matcher* matcher, const Options& options) {
    new (matcher) search::Matcher(options_of<search::PatternOptions>(options));
}

// Name of the kernel, table, shared memory, and whether letters that fold to k or s matter.
using GpuTable = py::Tuple<nb::str, nb::bytes, std::size_t, bool>;

std::optional<GpuTable> scan_table(const search::Matcher& matcher, std::size_t max_shared_bytes) {
    const std::optional<search::Node> pattern = matcher.pattern();
    if (!pattern) {
        return std::nullopt;
    }
    const search::ScanTable table = search::make_scan_table(
        *pattern, matcher.required(), matcher.is_multi_line(), max_shared_bytes);
    if (table.kind == search::ScanTable::Kind::none) {
        return std::nullopt;
    }
    const bool is_automaton = table.kind == search::ScanTable::Kind::automaton;
    return nb::make_tuple(is_automaton ? "run_automaton" : "find_literals",
                          nb::bytes(table.bytes.data(), table.bytes.size()), table.shared_bytes,
                          table.is_unsure_of_folding);
}

// What a scan of all blocks has found, in columns by block.
struct ScanColumns {
    std::vector<std::uint32_t> sizes, num_lines, last_lines;
    std::vector<std::uint8_t> may_match, has_nul;

    search::ScannedBlocks::Columns spans() const {
        return {sizes, may_match, has_nul, num_lines, last_lines};
    }
};

// What a search ends with after its Cancellation was used.
class SearchStoppedError : public std::exception {
  public:
    const char* what() const noexcept override { return "the search was stopped"; }
};

using FailedFile = py::Tuple<nb::bytes, std::uint64_t, ReadFailure, nb::str>;
using Found = py::Tuple<nb::bytes, py::List<FailedFile>>;

// Paths to print, and inode numbers.
using Roots = py::Sequence<py::Tuple<nb::bytes, std::uint64_t>>;

// A search with all that it needs. Python keeps the reader, the matcher, the rows and the
// cancellation alive.
class Search {
  public:
    Search(BlockReader& reader, const search::Matcher& matcher, const HeldFileRows& rows,
           const Roots& roots, const Options& options, unsigned num_threads,
           const Cancellation& cancellation)
        : cancellation_(cancellation),
          reader_(reader),
          matcher_(matcher),
          options_(search_options_of(options, matcher)),
          files_(list_files(reader, rows, roots, options)),
          search_(reader, files_, matcher, options_, num_threads) {}

    ~Search() {
        const nb::gil_scoped_release release;  // a read that has to end first may need Python
        search_.stop();
    }
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;

    void skip_files(PartHeads& heads, int word_rule, std::uint64_t block_size, unsigned num_threads,
                    bool in_grammar) {
        search_.use(heads, block_size);
        const auto rule = static_cast<WordRule>(word_rule);
        if ((!in_grammar || !scan_grammar(heads, rule, block_size, num_threads)) &&
            !needs_all_files()) {
            skip_by_literals(heads, rule, block_size, num_threads);
        }
    }

    py::List<nb::bytes> warnings() const {
        py::List<nb::bytes> texts;
        for (const std::string& text : files_.warnings()) {
            texts.append(nb::bytes(text.data(), text.size()));
        }
        return texts;
    }

    bool needs_all_files() const { return options_.needs_all_files(); }

    nb::bytes blocks(std::uint64_t num_blocks, std::uint64_t block_size) const {
        const std::vector<std::uint8_t> has_files = files_.blocks(num_blocks, block_size);
        return nb::bytes(has_files.data(), has_files.size());
    }

    void skip_blocks(const nb::bytes& sizes, const nb::bytes& may_match, const nb::bytes& has_nul,
                     const nb::bytes& num_lines, const nb::bytes& last_lines,
                     std::uint64_t block_size) {
        columns_of_scan_ = {values_of<std::uint32_t>(sizes), values_of<std::uint32_t>(num_lines),
                            values_of<std::uint32_t>(last_lines),
                            values_of<std::uint8_t>(may_match), values_of<std::uint8_t>(has_nul)};
        const std::size_t count = columns_of_scan_.sizes.size();
        if (columns_of_scan_.num_lines.size() != count ||
            columns_of_scan_.last_lines.size() != count ||
            columns_of_scan_.may_match.size() != count ||
            columns_of_scan_.has_nul.size() != count) {
            throw std::invalid_argument("columns of a scan have different sizes");
        }
        scanned_.emplace(columns_of_scan_.spans(), block_size);
        searched_ =
            files_.keep_if([&](const LayoutView& layout) { return scanned_->may_match(layout); });
        search_.use(*scanned_);
    }

    std::optional<Found> next() {
        std::optional<search::Found> found;
        run([&] { found = search_.next(); });
        if (!found) {
            return std::nullopt;
        }
        py::List<FailedFile> failed;
        for (const auto& [path, ino, failure, message] : found->failed) {
            failed.append(
                nb::make_tuple(nb::bytes(path.data(), path.size()), ino, failure, message));
        }
        return nb::make_tuple(nb::bytes(found->output.data(), found->output.size()), failed);
    }

    py::Dict<nb::str, std::uint64_t> totals() const {
        const search::SearchTotals& totals = search_.totals();
        py::Dict<nb::str, std::uint64_t> values;
        values["matches"] = totals.num_matches;
        values["matched_lines"] = totals.num_matched_lines;
        values["files"] = totals.num_files + searched_.first;
        values["files_with_matches"] = totals.num_files_with_matches;
        values["bytes_printed"] = totals.num_bytes_printed;
        values["bytes"] = totals.num_bytes + searched_.second;
        values["skipped_files"] = skipped_.first;
        values["skipped_bytes"] = skipped_.second;
        return values;
    }

  private:
    // Scans the grammar. Returns false if there is no automaton for the pattern, if it takes too
    // long, or if there is no need.
    bool scan_grammar(PartHeads& heads, WordRule rule, std::uint64_t block_size,
                      unsigned num_threads) {
        using Goal = search::GrammarScan::Goal;
        source_ = reader_.source();
        // With --quiet, the search ends at the first match.
        const bool counts = source_ && options_.needs_line_counts_only() && !options_.quiet;
        const std::optional<search::Node> pattern = matcher_.line_pattern();
        if (!pattern || (needs_all_files() && !counts)) {
            return false;
        }
        auto automaton = search::make_line_automaton(*pattern, rule, options_.text);
        if (!automaton) {
            return false;
        }
        const bool makes_lines = source_ && !counts && search::can_search_windows(options_);
        const search::GrammarScan::Options scan_options{
            counts        ? Goal::count
            : makes_lines ? Goal::lines
                          : Goal::skip,
            matcher_.required().sets.empty() ? kManySteps : kFewSteps, options_.has_line_numbers()};
        grammar_.emplace(std::move(*automaton), rule, heads, source_.get(), block_size,
                         scan_options);
        run([&] {
            grammar_->run(files_, num_threads);
            if (!needs_all_files()) {
                skip_unless([&](const LayoutView& layout) { return grammar_->may_match(layout); });
            }
        });
        if (counts) {
            search_.use_counts(*grammar_);
        } else if (makes_lines) {
            search_.use_windows(*grammar_);
        }
        return !grammar_->is_slow();
    }

    template <typename MayMatch>
    void skip_unless(const MayMatch& may_match) {
        const auto [num_files, num_bytes] = files_.keep_if(may_match);
        skipped_.first += num_files;
        skipped_.second += num_bytes;
    }

    void skip_by_literals(PartHeads& heads, WordRule rule, std::uint64_t block_size,
                          unsigned num_threads) {
        search::FileFilter filter(matcher_.required().sets, rule);
        if (filter.is_useless()) {
            return;
        }
        run([&] {
            filter.read_heads(heads, block_size, files_, num_threads);
            skip_unless([&](const LayoutView& layout) { return filter.may_match(layout); });
        });
    }

    // Runs work() as run_interruptibly does. Throws SearchStoppedError after the cancellation was
    // used; the threads of the search have ended then.
    template <typename Work>
    void run(Work&& work) {
        const CancellationScope scope(&cancellation_);
        try {
            run_interruptibly(work);
        } catch (const Cancelled&) {
            if (!cancellation_.is_cancelled()) {
                throw;
            }
            const nb::gil_scoped_release release;
            search_.stop();
            throw SearchStoppedError();
        }
    }

    search::FileList list_files(BlockReader& reader, const HeldFileRows& rows, const Roots& roots,
                                const Options& values) const {
        const auto read = [&](std::uint64_t ino,
                              const LayoutView& layout) -> std::optional<std::string> {
            FileLayouts layouts;
            layouts.emplace_back(ino, layout.copy());
            reader.layouts.add(std::move(layouts));
            search::FileText text;
            return text.read(reader, ino, layout) ? std::nullopt
                                                  : std::optional(std::string(text.bytes()));
        };
        const std::vector<search::SearchRoot> search_roots = roots_of(roots);
        const auto options = options_of<search::ListOptions>(values);
        std::optional<search::FileList> files;
        const CancellationScope scope(&cancellation_);
        try {
            run_interruptibly([&] { files.emplace(rows.rows, search_roots, options, read); });
        } catch (const Cancelled&) {
            if (cancellation_.is_cancelled()) {
                throw SearchStoppedError();
            }
            throw;
        }
        return std::move(*files);
    }

    static std::vector<search::SearchRoot> roots_of(const Roots& values) {
        std::vector<search::SearchRoot> roots;
        for (const nb::handle value : values) {
            roots.push_back(
                {string_of(value[nb::int_(0)]), nb::cast<std::uint64_t>(value[nb::int_(1)])});
        }
        return roots;
    }

    // Of a part. A search with literals takes about as long as the few to decode and search it.
    static constexpr std::size_t kFewSteps = 1 << 17, kManySteps = 16 << 20;

    const Cancellation& cancellation_;
    BlockReader& reader_;
    const search::Matcher& matcher_;
    const SearchOptions options_;
    search::FileList files_;
    ScanColumns columns_of_scan_;
    std::optional<search::ScannedBlocks> scanned_;
    std::shared_ptr<BlockSource> source_;
    std::optional<search::GrammarScan> grammar_;
    search::ArchiveSearch search_;  // uses all of these until it is destroyed
    // Files and bytes that were skipped, and those that only a scan has searched.
    std::pair<std::uint64_t, std::uint64_t> skipped_{0, 0}, searched_{0, 0};
};

}  // namespace

void bind_search(nb::module_& module) {
    nb::exception<search::PatternError>(module, "PatternError", PyExc_ValueError);
    nb::exception<search::SearchError>(module, "SearchError", PyExc_RuntimeError);
    nb::exception<SearchStoppedError>(module, "SearchStoppedError", PyExc_RuntimeError);
    nb::class_<Cancellation>(module, "Cancellation", "Ends a search from any thread.")
        .def(nb::init<>())
        .def("cancel", &Cancellation::cancel,
             "Ends the search. Its methods, also those that run now, soon raise "
             "SearchStoppedError.")
        .def_prop_ro("is_cancelled", &Cancellation::is_cancelled);
    module.def(
        "limit_memory",
        [](std::size_t num_bytes) { search::SearchMemory::of_process().set_limit(num_bytes); },
        "num_bytes"_a,
        "Sets how much memory all searches of the process may take together for what is large: "
        "lines and their matches. A search that needs more raises SearchError.");
    nb::class_<search::Matcher>(module, "Matcher", "A compiled pattern. Thread-safe.")
        .def("__init__", &make_matcher, "options"_a,
             "Compiles `patterns`; a match of one of them is a match. Raises PatternError.\n\n"
             "`options` has the members of PatternOptions in native/search.")
        .def("scan_table", &scan_table, "max_shared_bytes"_a,
             "Returns what a GPU searches blocks for, see "
             "gompfs.search.gpu.block_scan.ScanTable.\n\n"
             "The kernel gets at most `max_shared_bytes` of shared memory. None if a block cannot "
             "be searched in this way.");
    nb::class_<Search>(module, "Search", "A search through the files of an archive.")
        .def(nb::init<BlockReader&, const search::Matcher&, const HeldFileRows&, const Roots&,
                      const Options&, unsigned, const Cancellation&>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
             nb::keep_alive<1, 8>(), "reader"_a, "matcher"_a, "rows"_a, "roots"_a, "options"_a,
             "num_threads"_a, "cancellation"_a,
             "Searches the files at and below `roots`: paths to print, and inode numbers.\n\n"
             "`options` has the members of SearchOptions and ListOptions in native/search. Raises "
             "PatternError for a glob, SearchError for too many roots or if ignore rules take too "
             "long, SearchStoppedError, and ValueError if the rows contradict each other.")
        .def("skip_files", &Search::skip_files, nb::keep_alive<1, 2>(), "heads"_a, "word_rule"_a,
             "block_size"_a, "num_threads"_a, "in_grammar"_a,
             "Leaves out files that cannot have a match, judged by the words of their parts; and "
             "counts lines without reading files, if that is all that is asked.\n\n"
             "`word_rule` is an index of gompfs.model.WORD_RULES. Without `in_grammar`, only the "
             "words "
             "of literals are looked up: a device finds the rest. Raises SearchStoppedError.")
        .def_prop_ro("warnings", &Search::warnings, "What is wrong with ignore files, each a line.")
        .def_prop_ro("needs_all_files", &Search::needs_all_files,
                     "Whether files without a match are of interest too.")
        .def(
            "blocks", &Search::blocks, "num_blocks"_a, "block_size"_a,
            "Returns 1 for each of the first `num_blocks` blocks of the stream in which a file has "
            "bytes, else 0.")
        .def("skip_blocks", &Search::skip_blocks, "sizes"_a, "may_match"_a, "has_nul"_a,
             "num_lines"_a, "last_lines"_a, "block_size"_a,
             "Does not read what has no matches, by what is known of all blocks; once, before the "
             "first `next`.\n\n"
             "For each block: its uncompressed size, whether it may have a byte of a line with a "
             "match, whether it has a NUL, the number of line feeds, the offset after the last one "
             "or 0. `may_match` and `has_nul` are bytes, the others 32 bits wide. Nothing need be "
             "known of a block that may match.")
        .def("next", &Search::next,
             "Returns the next output, and (path, ino, reason, message) of the files that failed; "
             "None at the end.\n\n"
             "The message is empty if the file could not be read. Otherwise it says why the search "
             "of the file ended. Raises SearchStoppedError.")
        .def("totals", &Search::totals, "Returns how much was searched and found so far.");
}

}  // namespace gompfs
