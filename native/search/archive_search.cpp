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

constexpr std::uint64_t kUnitSize = 256 << 10, kMaxUnitSize = 1 << 20;
constexpr std::size_t kMaxFilesOfUnit = 4096;
constexpr std::uint64_t kLargeFile = 16 << 20;
constexpr std::size_t kMaxUnitsOfThread = 32;
constexpr std::size_t kMaxOutput = 16 << 20;  // after which no unit is begun in a call of next()

// A failed read of a large file, on its way through LargeFileSearch.
struct ReadFailed {
    ReadFailure failure;
};

}  // namespace

ArchiveSearch::ArchiveSearch(BlockReader& reader, const FileList& files, const Matcher& matcher,
                             const SearchOptions& options, unsigned num_threads)
    : reader_(reader),
      files_(files),
      matcher_(matcher),
      options_(options),
      num_threads_(std::max(num_threads, 1u)),
      num_units_(num_threads_) {}

std::unique_ptr<LineSink> ArchiveSearch::make_sink() const {
    if (options_.output == SearchOptions::Output::json) {
        return std::make_unique<JsonSink>(options_);
    }
    return std::make_unique<TextSink>(options_);
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
               size < kMaxUnitSize && !is_large(files_[unit.end])) {
            const auto part_of_file = part_of(files_[unit.end]);
            const bool continues = part_of_file && part_of_file == part;
            if (size >= (continues ? kMaxUnitSize : kUnitSize)) {
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

void ArchiveSearch::search_one(const ListedFile& file, MatchSession& session, LineSink& sink,
                               std::string& buffer, UnitResult& result) {
    if (options_.output == SearchOptions::Output::files) {
        sink.begin_file(files_.path(file));
        sink.end_file({});
        ++result.totals.num_files;
        return;
    }
    const std::uint64_t size = files_.layout(file).size;
    ReadPieces read;
    if (const ReadFailure failure = reader_.read_pieces(file.ino, 0, size, read)) {
        result.found.failed.push_back({files_.path(file), file.ino, failure});
        return;
    }
    const auto view_of = [](const iovec& piece) {
        return std::string_view(static_cast<const char*>(piece.iov_base), piece.iov_len);
    };
    std::string_view text;
    if (read.pieces.size() == 1) {
        text = view_of(read.pieces.front());
    } else {
        buffer.clear();
        for (const iovec& piece : read.pieces) {
            buffer += view_of(piece);
        }
        text = buffer;
    }
    const NulMeaning meaning = nul_meaning(options_, file.is_root());
    count(search_file(options_, meaning, session, sink, files_.path(file), text), result.totals);
}

ArchiveSearch::UnitResult ArchiveSearch::search_unit(const Unit& unit) {
    UnitResult result;
    FileLayouts layouts;
    for (std::size_t index = unit.begin; index < unit.end; ++index) {
        layouts.emplace_back(files_[index].ino, files_.layout(files_[index]).copy());
    }
    reader_.layouts.add(std::move(layouts));
    MatchSession session(matcher_);
    const std::unique_ptr<LineSink> sink = make_sink();
    std::string buffer;
    for (std::size_t index = unit.begin; index < unit.end; ++index) {
        search_one(files_[index], session, *sink, buffer, result);
        throw_if_cancelled();
    }
    take_output(*sink, result);
    return result;
}

void ArchiveSearch::take_output(LineSink& sink, UnitResult& result) {
    LineSink::Output output = sink.take_output();
    result.found.output = std::move(output.text);
    result.needs_separator = output.needs_separator;
}

void ArchiveSearch::append(UnitResult&& result, Found& found) {
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

void ArchiveSearch::begin_large(const ListedFile& file) {
    const LayoutView layout = files_.layout(file);
    reader_.layouts.add({{file.ino, layout.copy()}});
    large_file_ = &file;
    large_sink_ = make_sink();
    const auto read = [this, ino = file.ino](std::uint64_t offset, std::size_t size,
                                             std::string& text) {
        const std::size_t before = text.size();
        text.resize(before + size);
        const MutableBytes out(reinterpret_cast<std::uint8_t*>(text.data()) + before, size);
        if (const ReadFailure failure = reader_.decode_into(ino, offset, out, num_threads_, true)) {
            throw ReadFailed{failure};
        }
    };
    large_ = std::make_unique<LargeFileSearch>(
        options_, nul_meaning(options_, file.is_root()), matcher_, *large_sink_, files_.path(file),
        layout.size, read, num_threads_,
        scanned_ == nullptr ? std::nullopt : scanned_->blocks_of(layout));
}

// Searches one window of a large file.
ArchiveSearch::Found ArchiveSearch::search_large_window() {
    UnitResult result;
    bool goes_on = false;
    try {
        goes_on = large_->search_window();
    } catch (const ReadFailed& error) {
        result.found.failed.push_back({files_.path(*large_file_), large_file_->ino, error.failure});
    } catch (const SearchError& error) {
        throw SearchError(files_.path(*large_file_) + ": " + error.what());
    }
    take_output(*large_sink_, result);
    if (!goes_on) {
        if (result.found.failed.empty()) {
            count(large_->counts(), result.totals);
        }
        large_ = nullptr;
    }
    Found found;
    append(std::move(result), found);
    return found;
}

// Searches units, and fewer of them if much is found.
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
    for (std::size_t index = 0; index < units.size(); ++index) {
        if (!results[index]) {  // a later one that another thread has searched is searched again
            next_file_ = units[index].begin;
            num_units_ = num_threads_;
            break;
        }
        append(std::move(*results[index]), found);
        results[index].reset();
    }
    return found;
}

std::optional<ArchiveSearch::Found> ArchiveSearch::next() {
    if (!large_) {
        if (next_file_ == files_.size()) {
            return std::nullopt;
        }
        if (!is_large(files_[next_file_])) {
            const std::vector<Unit> units = next_units();
            return search_units(units);
        }
        begin_large(files_[next_file_++]);
    }
    return search_large_window();
}

}  // namespace gompfs::search
