// Searches the files of an archive; see archive_search.h.
#include "search/archive_search.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/failures.h"
#include "search/json_sink.h"
#include "search/text_sink.h"

namespace gompfs::search {
namespace {

constexpr std::uint64_t kMinUnitSize = 16 << 10, kMaxUnitSize = 1 << 20;
constexpr std::size_t kMaxFilesOfUnit = 4096;
constexpr std::uint64_t kLargeFile = 16 << 20;
constexpr std::size_t kMaxUnitsOfThread = 32;
constexpr std::size_t kMaxOutput = 16 << 20;  // of units that are searched at the same time
constexpr std::size_t kPieceOfOutput = 1 << 20;

// A failed read of a large file, on its way through LargeFileSearch.
struct ReadFailed {
    ReadFailure failure;
};

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

std::unique_ptr<LineSink> ArchiveSearch::make_sink(std::size_t max_output,
                                                   std::function<void()> when_full) const {
    if (options_.output == SearchOptions::Output::json) {
        return std::make_unique<JsonSink>(options_, max_output, std::move(when_full));
    }
    return std::make_unique<TextSink>(options_, max_output, std::move(when_full));
}

bool ArchiveSearch::is_large(const ListedFile& file) const {
    return files_.layout(file).size > kLargeFile && options_.output != SearchOptions::Output::files;
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

void ArchiveSearch::count(const FileCounts& counts, SearchTotals& totals) const {
    totals.num_matches += counts.num_matches;
    totals.num_matched_lines += counts.num_lines;
    totals.num_bytes += counts.num_bytes;
    ++totals.num_files;
    totals.num_files_with_matches += counts.num_matched_lines != 0;
}

void ArchiveSearch::search_one(const ListedFile& file, Worker& worker, LineSink& sink,
                               Result& result) {
    if (options_.output == SearchOptions::Output::files) {
        sink.begin_file(files_.path(file));
        sink.end_file({});
        ++result.totals.num_files;
        return;
    }
    if (const ReadFailure failure = worker.text.read(reader_, file.ino, files_.layout(file))) {
        result.found.failed.push_back({files_.path(file), file.ino, failure});
        return;
    }
    const NulMeaning meaning = nul_meaning(options_, file.is_root());
    const std::string path = files_.path(file);
    count(search_file(options_, meaning, worker.session, sink, path, worker.text.bytes()),
          result.totals);
}

// A worker that no thread uses.
std::unique_ptr<ArchiveSearch::Worker> ArchiveSearch::take_worker() {
    const std::lock_guard lock(workers_mutex_);
    if (workers_.empty()) {
        return std::make_unique<Worker>(matcher_);
    }
    std::unique_ptr<Worker> worker = std::move(workers_.back());
    workers_.pop_back();
    return worker;
}

void ArchiveSearch::give_back(std::unique_ptr<Worker> worker) {
    const std::lock_guard lock(workers_mutex_);
    workers_.push_back(std::move(worker));
}

ArchiveSearch::UnitResult ArchiveSearch::search_unit(const Unit& unit) {
    UnitResult result;
    FileLayouts layouts;
    for (std::size_t index = unit.begin; index < unit.end; ++index) {
        layouts.emplace_back(files_[index].ino, files_.layout(files_[index]).copy());
    }
    reader_.layouts.add(std::move(layouts));
    std::unique_ptr<Worker> worker = take_worker();
    const std::unique_ptr<LineSink> sink = make_sink(kMaxOutput, [] { throw MuchOutput(); });
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
    give_back(std::move(worker));
    take_output(*sink, result);
    return result;
}

void ArchiveSearch::take_output(LineSink& sink, Result& result) {
    LineSink::Output output = sink.take_output();
    result.found.output = std::move(output.text);
    result.needs_separator = output.needs_separator;
}

void ArchiveSearch::append(Result&& result, Found& found) {
    if (!result.found.output.empty()) {
        if (has_output_ && result.needs_separator) {
            found.output += TextSink::separator(options_);
        }
        has_output_ = true;
        found.output += result.found.output;
    }
    std::move(result.found.failed.begin(), result.found.failed.end(),
              std::back_inserter(found.failed));
    const SearchTotals& totals = result.totals;
    totals_.num_matches += totals.num_matches;
    totals_.num_matched_lines += totals.num_matched_lines;
    totals_.num_files += totals.num_files;
    totals_.num_files_with_matches += totals.num_files_with_matches;
    totals_.num_bytes += totals.num_bytes;
}

// Searches a file on a thread of its own.
void ArchiveSearch::search_alone(const ListedFile& file, const Generator<Result>::Yield& yield) {
    std::unique_ptr<LineSink> sink;
    Result result;
    const auto hand_on = [&] {
        take_output(*sink, result);
        yield(std::exchange(result, {}));
    };
    sink = make_sink(kPieceOfOutput, hand_on);
    reader_.layouts.add({{file.ino, files_.layout(file).copy()}});
    if (is_large(file)) {
        search_large(file, *sink, result, hand_on);
    } else {
        Worker worker(matcher_);
        search_one(file, worker, *sink, result);
    }
    hand_on();
}

void ArchiveSearch::search_large(const ListedFile& file, LineSink& sink, Result& result,
                                 const std::function<void()>& end_window) {
    const auto read = [this, ino = file.ino](std::uint64_t offset, std::size_t size,
                                             std::string& text) {
        const std::size_t before = text.size();
        text.resize(before + size);
        const MutableBytes out(reinterpret_cast<std::uint8_t*>(text.data()) + before, size);
        if (const ReadFailure failure = reader_.decode_into(ino, offset, out, num_threads_, true)) {
            throw ReadFailed{failure};
        }
    };
    const LayoutView layout = files_.layout(file);
    LargeFileSearch search(options_, nul_meaning(options_, file.is_root()), matcher_, sink,
                           files_.path(file), layout.size, read, num_threads_,
                           scanned_ == nullptr ? std::nullopt : scanned_->blocks_of(layout));
    try {
        while (search.search_window()) {
            end_window();
        }
        count(search.counts(), result.totals);
    } catch (const ReadFailed& error) {
        result.found.failed.push_back({files_.path(file), file.ino, error.failure});
    } catch (const SearchError& error) {
        throw SearchError(files_.path(file) + ": " + error.what());
    }
}

// Searches units, and fewer of them, or smaller ones, if much is found. What was searched after the
// first unit that is not complete is searched again.
ArchiveSearch::Found ArchiveSearch::search_units(const std::vector<Unit>& units) {
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

std::optional<ArchiveSearch::Found> ArchiveSearch::next() {
    for (;;) {
        if (alone_) {
            if (std::optional<Result> result = alone_->next()) {
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
        is_next_alone_ = false;
        const ListedFile& file = files_[next_file_++];
        alone_ = std::make_unique<Generator<Result>>(
            [this, &file](const auto& yield) { search_alone(file, yield); });
    }
}

}  // namespace gompfs::search
