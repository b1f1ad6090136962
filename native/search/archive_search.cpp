// Searches the files of an archive; see archive_search.h.
#include "search/archive_search.h"

#include <algorithm>
#include <atomic>
#include <unordered_set>
#include <utility>

#include "common/failures.h"
#include "common/in_order.h"
#include "search/file_search.h"
#include "search/large_files.h"
#include "search/match/search_memory.h"
#include "search/print/text_sink.h"
#include "search/window_search.h"

namespace gompfs::search {
namespace {

constexpr std::uint64_t kMinUnitSize = 16 << 10, kMaxUnitSize = 1 << 20;
constexpr std::size_t kMaxFilesOfUnit = 4096;
constexpr std::uint64_t kLargeFile = 16 << 20;
constexpr std::size_t kMaxUnitsOfThread = 32;
constexpr std::size_t kMaxOutput = 8 << 20;  // of units that are searched at the same time
constexpr std::size_t kPieceOfOutput = 1 << 20;
constexpr std::uint64_t kMaxMultiLine = 1 << 30;

// A file that must be searched alone.
struct MuchOutput {};

}  // namespace

ArchiveSearch::ArchiveSearch(BlockReader& reader, const FileList& files, const Matcher& matcher,
                             const SearchOptions& options, unsigned num_threads)
    : reader_(reader),
      files_(files),
      matcher_(matcher),
      options_(options),
      num_threads_(std::max(num_threads, 1u)),
      num_units_(num_threads_),
      unit_size_(kMaxUnitSize) {}

bool ArchiveSearch::is_large(const ListedFile& file) const {
    return files_.layout(file).size > kLargeFile &&
           options_.output() != SearchOptions::Output::files && !counted_lines(file);
}

// The first block of the part that the file begins in. None if the file has no bytes.
std::optional<std::uint64_t> ArchiveSearch::part_of(const ListedFile& file) const {
    const LayoutView layout = files_.layout(file);
    if (heads_ == nullptr || layout.extents.empty()) {
        return std::nullopt;
    }
    return heads_->first_block_of(layout.extents.front().stream_offset / block_size_);
}

// The next units of files that are not large: none if the next file is large.
std::vector<ArchiveSearch::Unit> ArchiveSearch::next_units() {
    std::vector<Unit> units;
    while (units.size() < num_units_ && next_file_ < files_.size() &&
           !is_large(files_[next_file_])) {
        Unit unit{next_file_, next_file_};
        std::uint64_t size = 0;
        std::optional<std::uint64_t> part = part_of(files_[unit.begin]);
        while (unit.end < files_.size() && unit.end - unit.begin < kMaxFilesOfUnit &&
               size < unit_size_ && !is_large(files_[unit.end])) {
            const auto part_of_file = part_of(files_[unit.end]);
            const bool continues = part_of_file && part_of_file == part;
            if (!continues && size >= unit_size_ / 4) {
                break;
            }
            part = part_of_file;
            size += files_.layout(files_[unit.end++]).size;
        }
        next_file_ = unit.end;
        units.push_back(unit);
    }
    num_units_ = std::min(2 * num_units_, kMaxUnitsOfThread * num_threads_);
    return units;
}

// The lines of the file that match, if a scan makes them.
std::optional<FileWindows> ArchiveSearch::windows_of(const ListedFile& file) const {
    return windows_ == nullptr || is_large(file) ? std::nullopt
                                                 : windows_->windows_of(files_.layout(file));
}

void ArchiveSearch::search_one(const ListedFile& file, Worker& worker, LineSink& sink,
                               SearchResult& result) {
    if (options_.output() == SearchOptions::Output::files) {
        sink.begin_file(files_.path(file));
        sink.end_file({});
        ++result.totals.num_files;
        return;
    }
    const std::string path = files_.path(file);
    const LayoutView layout = files_.layout(file);
    if (const auto num_lines = counted_lines(file)) {
        FileWalker walker(options_, sink, path, false);
        walker.finish_counted(*num_lines, layout.size);
        result.totals.add(walker.counts());
        return;
    }
    if (options_.is_multi_line && layout.size > kMaxMultiLine) {
        result.found.failed.push_back(
            {path, file.ino, {}, "the file is too large for --multiline: more than 1 GiB"});
        return;
    }
    std::optional<ContentCache::Key> key;
    if (ContentCache::is_for(layout)) {
        key.emplace(layout, file.is_root());
        if (const auto record = contents_.find(*key)) {
            FileWalker walker(options_, sink, path, false);
            walker.repeat(*record);
            result.totals.add(walker.counts());
            return;
        }
    }
    const auto windows = windows_of(file);
    if (!windows) {
        const ReadFailure failure =
            is_large(file) ? worker.text.read_alone(reader_, file.ino, layout, num_threads_)
                           : worker.text.read(reader_, file.ino, layout);
        if (failure) {
            result.found.failed.push_back({path, file.ino, failure});
            return;
        }
    }
    const NulMeaning meaning = nul_meaning(options_, file.is_root());
    const auto record = std::make_shared<ContentRecord>();
    try {
        result.totals.add(windows ? search_windows(options_, worker.session, sink, path, *windows,
                                                   layout.size, record.get())
                                  : search_file(options_, meaning, worker.session, sink, path,
                                                worker.text.bytes(), record.get()));
        if (key) {
            contents_.add(*key, record);
        }
    } catch (const SearchError& error) {
        result.found.failed.push_back({path, file.ino, {}, error.what()});
    }
}

ArchiveSearch::UnitResult ArchiveSearch::search_unit(const Unit& unit) {
    UnitResult result;
    FileLayouts layouts;
    for (std::size_t index = unit.begin; index < unit.end; ++index) {
        if (!counted_lines(files_[index])) {
            layouts.emplace_back(files_[index].ino, files_.layout(files_[index]).copy());
        }
    }
    reader_.layouts.add(std::move(layouts));
    std::unique_ptr<Worker> worker =
        workers_.take([this] { return std::make_unique<Worker>(matcher_); });
    const std::unique_ptr<LineSink> sink =
        make_sink(options_, kMaxOutput, [] { throw MuchOutput(); });
    result.end = unit.begin;
    while (result.end < unit.end && sink->size() < kMaxOutput && !result.is_next_alone) {
        try {
            search_one(files_[result.end], *worker, *sink, result);
            ++result.end;
        } catch (const MuchOutput&) {
            sink->drop_file();
            result.is_next_alone = true;
        }
        throw_if_cancelled();
    }
    workers_.give_back(std::move(worker));
    result.take_output(*sink);
    return result;
}

void ArchiveSearch::append(SearchResult&& result, Found& found) {
    if (!result.found.output.empty()) {
        if (has_output_ && result.needs_separator) {
            const std::string separator = TextSink::separator(options_);
            found.output += separator;
            result.totals.num_bytes_printed += separator.size();
        }
        has_output_ = true;
        found.output += result.found.output;
    }
    std::move(result.found.failed.begin(), result.found.failed.end(),
              std::back_inserter(found.failed));
    totals_.add(result.totals);
}

// Searches a file with much output, or all lines of a large file together.
void ArchiveSearch::search_alone(const ListedFile& file,
                                 const Generator<SearchResult>::Yield& yield) {
    std::unique_ptr<LineSink> sink;
    SearchResult result;
    const auto hand_on = [&] {
        result.take_output(*sink);
        yield(std::exchange(result, {}));
    };
    sink = make_sink(options_, kPieceOfOutput, hand_on);
    const LayoutView layout = files_.layout(file);
    reader_.layouts.add({{file.ino, layout.copy()}});
    Worker worker(matcher_);
    try {
        // Its bytes, and its text in UTF-8 if it was in another encoding.
        const bool is_read = options_.is_multi_line && is_large(file);
        const std::size_t whole =
            options_.encoding ? layout.size * (1 + TextDecoder::kGrowth) : layout.size / 2 * 5;
        const TakenMemory memory(is_read ? whole : 0);
        search_one(file, worker, *sink, result);
    } catch (const SearchError& error) {
        result.found.failed.push_back({files_.path(file), file.ino, {}, error.what()});
    }
    hand_on();
}

// Searches large files from `first` on, up to `end`.
void ArchiveSearch::search_large(std::size_t first, std::size_t end,
                                 const Generator<SearchResult>::Yield& yield) {
    LargeFiles files({reader_, files_, matcher_, options_, num_threads_, scanned_, contents_},
                     first, end, yield);
    InOrder(files).run(num_threads_);
}

// Whether the content of a file was searched already, in another file.
bool ArchiveSearch::is_known(const ListedFile& file) const {
    const LayoutView layout = files_.layout(file);
    return ContentCache::is_for(layout) &&
           contents_.find(ContentCache::Key(layout, file.is_root())) != nullptr;
}

// The end of the large files from `first` on that have different content, as far as can be seen.
std::size_t ArchiveSearch::end_of_large(std::size_t first) const {
    std::unordered_set<std::uint64_t> seen;
    std::size_t end = first;
    while (end < files_.size() && is_large(files_[end])) {
        const LayoutView layout = files_.layout(files_[end]);
        if (ContentCache::is_for(layout) &&
            !seen.insert(ContentCache::Key(layout, files_[end].is_root()).hash).second) {
            break;
        }
        ++end;
    }
    return end;
}

// Searches units, and fewer of them, or smaller ones, if much is found. What was searched after the
// first unit that is not complete is searched again.
Found ArchiveSearch::search_units(const std::vector<Unit>& units) {
    std::vector<std::optional<UnitResult>> results(units.size());
    std::atomic<std::size_t> num_output{0};
    parallel_for_all(units.size(), num_threads_, [&](std::size_t index) {
        if (index == 0 || num_output < kMaxOutput) {
            results[index] = search_unit(units[index]);
            num_output += results[index]->found.output.size();
        }
    });
    Found found;
    next_file_ = units.front().begin;
    std::size_t index = 0;
    for (; index < units.size() && results[index] && next_file_ == units[index].begin; ++index) {
        next_file_ = results[index]->end;
        is_next_alone_ = results[index]->is_next_alone;
        append(std::move(*results[index]), found);
        results[index].reset();
    }
    if (next_file_ != units[index - 1].end) {
        unit_size_ = std::max(unit_size_ / 4, kMinUnitSize);
    } else if (index == units.size()) {
        unit_size_ = std::min(2 * unit_size_, kMaxUnitSize);
    }
    if (index != units.size()) {
        num_units_ = num_threads_;
    }
    return found;
}

std::optional<Found> ArchiveSearch::next() {
    for (;;) {
        if (alone_) {
            if (std::optional<SearchResult> result = alone_->next()) {
                Found found;
                append(std::move(*result), found);
                return found;
            }
            alone_ = nullptr;
        }
        if (next_file_ == files_.size()) {
            return std::nullopt;
        }
        if (!is_next_alone_ && !is_large(files_[next_file_])) {
            const std::vector<Unit> units = next_units();
            return search_units(units);
        }
        const std::size_t first = next_file_++;
        if (std::exchange(is_next_alone_, false) || options_.is_multi_line ||
            is_known(files_[first])) {
            alone_ = std::make_unique<Generator<SearchResult>>(
                [this, first](const auto& yield) { search_alone(files_[first], yield); });
            continue;
        }
        next_file_ = end_of_large(first);
        alone_ = std::make_unique<Generator<SearchResult>>(
            [this, first, end = next_file_](const auto& yield) {
                search_large(first, end, yield);
            });
    }
}

}  // namespace gompfs::search
