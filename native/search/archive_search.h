// Searches the files of an archive on several threads, and returns what it finds in their order.
//
// Files are searched in units of about half a MiB of text: files next to each other in the stream
// share blocks. A unit ends where a part does, if possible, so that no two threads open its head. A
// call of next() searches some units at the same time and returns their outputs one after another,
// so output comes while the search goes on, and memory is limited. After much output a call begins
// no more units, and a unit ends. A large file, or one with much output, is searched alone, and its
// output returned in pieces: a large one by all threads together, a window at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "blocks/block_reader.h"
#include "common/generator.h"
#include "parts/part_heads.h"
#include "search/file_list.h"
#include "search/file_search.h"
#include "search/file_text.h"
#include "search/matcher.h"
#include "search/scanned_blocks.h"
#include "search/search_options.h"

namespace gompfs::search {

struct SearchTotals {
    std::uint64_t num_matches = 0, num_matched_lines = 0;
    std::uint64_t num_files = 0, num_files_with_matches = 0;
    std::uint64_t num_bytes = 0;
};

class ArchiveSearch {
  public:
    // Any of these must outlive the search.
    ArchiveSearch(BlockReader& reader, const FileList& files, const Matcher& matcher,
                  const SearchOptions& options, unsigned num_threads);

    // Uses what a scan of the blocks has found, for the ranges of large files that need not be
    // read. It must outlive the search.
    void use(const ScannedBlocks& scanned) { scanned_ = &scanned; }

    // Cuts units at the ends of these parts, which must outlive the search.
    void use(const PartHeads& heads, std::uint64_t block_size) {
        heads_ = &heads;
        block_size_ = block_size;
    }

    // A file that could not be read.
    struct FailedFile {
        std::string path;
        std::uint64_t ino;
        ReadFailure failure;
    };
    struct Found {
        std::string output;
        std::vector<FailedFile> failed;
    };

    // Searches the next files. Returns nothing after the last one. Throws SearchError, and what
    // BlockReader::read_pieces throws.
    std::optional<Found> next();

    // Ends the search. Waits for what other threads do for it.
    void stop() { alone_ = nullptr; }

    const SearchTotals& totals() const { return totals_; }

  private:
    struct Unit {
        std::size_t begin, end;  // files
    };
    struct Result {
        Found found;
        SearchTotals totals;
        bool needs_separator = false;
    };
    // What a thread needs to search units one after another. To make it takes as long as to search
    // some files, above all if its memory is new.
    struct Worker {
        explicit Worker(const Matcher& matcher) : session(matcher) {}

        MatchSession session;
        FileText text;
    };
    struct UnitResult : Result {
        std::size_t end = 0;         // of the files that were searched
        bool is_next_alone = false;  // the next file has much output
    };

    std::unique_ptr<LineSink> make_sink(std::size_t max_output,
                                        std::function<void()> when_full) const;
    bool is_large(const ListedFile& file) const;
    std::optional<std::uint64_t> part_of(const ListedFile& file) const;
    std::vector<Unit> next_units();
    Found search_units(const std::vector<Unit>& units);
    UnitResult search_unit(const Unit& unit);
    std::unique_ptr<Worker> take_worker();
    void give_back(std::unique_ptr<Worker> worker);
    void search_one(const ListedFile& file, Worker& worker, LineSink& sink, Result& result);
    void search_alone(const ListedFile& file, const Generator<Result>::Yield& yield);
    void search_large(const ListedFile& file, LineSink& sink, Result& result,
                      const std::function<void()>& end_window);
    static void take_output(LineSink& sink, Result& result);
    void append(Result&& result, Found& found);
    void count(const FileCounts& counts, SearchTotals& totals) const;

    BlockReader& reader_;
    const FileList& files_;
    const Matcher& matcher_;
    const SearchOptions& options_;
    const unsigned num_threads_;
    const ScannedBlocks* scanned_ = nullptr;
    const PartHeads* heads_ = nullptr;
    std::uint64_t block_size_ = 0;
    std::size_t next_file_ = 0;
    bool is_next_alone_ = false;
    std::size_t num_units_;  // to search at the next call
    std::uint64_t unit_size_;
    SearchTotals totals_;
    bool has_output_ = false;
    std::mutex workers_mutex_;
    std::vector<std::unique_ptr<Worker>> workers_;  // that no thread uses
    std::unique_ptr<Generator<Result>> alone_;      // of the file that is searched alone
};

}  // namespace gompfs::search
