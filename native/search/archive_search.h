// Searches the files of an archive on several threads, and returns what it finds in their order.
//
// Files are searched in units of about half a MiB of text: files next to each other in the stream
// share blocks. A unit ends where a part does, if possible, so that no two threads open its head. A
// call of next() searches some units at the same time and returns their outputs one after another,
// so output comes while the search goes on, and memory is limited. After much output a call begins
// no more units, and a unit ends. A file with much output is searched alone, and its output
// returned in pieces. So is that of large files, pieces of which all threads search
// (large_file_search.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "blocks/block_reader.h"
#include "common/generator.h"
#include "common/spares.h"
#include "search/content_cache.h"
#include "search/files/file_list.h"
#include "search/files/file_text.h"
#include "search/gpu/scanned_blocks.h"
#include "search/grammar/grammar_scan.h"
#include "search/match/matcher.h"
#include "search/print/search_options.h"
#include "search/search_result.h"
#include "text/part_heads.h"

namespace gompfs::search {

class ArchiveSearch {
  public:
    // Any of these must outlive the search.
    ArchiveSearch(BlockReader& reader, const FileList& files, const Matcher& matcher,
                  const SearchOptions& options, unsigned num_threads);

    // Uses what a scan of the blocks has found, for the ranges of large files that need not be
    // read. It must outlive the search.
    void use(const ScannedBlocks& scanned) { scanned_ = &scanned; }

    // Does not read files whose lines a scan has counted. It must outlive the search.
    void use_counts(const GrammarScan& counted) { counted_ = &counted; }
    // Does not read files whose lines a scan makes. It must outlive the search.
    void use_windows(GrammarScan& scan) { windows_ = &scan; }

    // Cuts units at the ends of these parts, which must outlive the search.
    void use(const PartHeads& heads, std::uint64_t block_size) {
        heads_ = &heads;
        block_size_ = block_size;
    }

    // Searches the next files. Returns nothing after the last one. Throws what
    // BlockReader::read_pieces throws.
    std::optional<Found> next();

    // Ends the search. Waits for what other threads do for it.
    void stop() { alone_ = nullptr; }

    const SearchTotals& totals() const { return totals_; }

  private:
    struct Unit {
        std::size_t begin, end;  // files
    };
    // What a thread needs to search units one after another. To make it takes as long as to search
    // some files, above all if its memory is new.
    struct Worker {
        explicit Worker(const Matcher& matcher) : session(matcher) {}

        MatchSession session;
        FileText text;
    };
    struct UnitResult : SearchResult {
        std::size_t end = 0;         // of the files that were searched
        bool is_next_alone = false;  // the next file has much output
    };

    std::optional<std::uint64_t> counted_lines(const ListedFile& file) const {
        return counted_ == nullptr ? std::nullopt : counted_->num_lines(files_.layout(file));
    }
    bool is_large(const ListedFile& file) const;
    std::optional<std::uint64_t> part_of(const ListedFile& file) const;
    std::vector<Unit> next_units();
    Found search_units(const std::vector<Unit>& units);
    UnitResult search_unit(const Unit& unit);
    bool is_known(const ListedFile& file) const;
    std::size_t end_of_large(std::size_t first) const;
    std::optional<FileWindows> windows_of(const ListedFile& file) const;
    void search_one(const ListedFile& file, Worker& worker, LineSink& sink, SearchResult& result);
    void search_alone(const ListedFile& file, const Generator<SearchResult>::Yield& yield);
    void search_large(std::size_t first, std::size_t end,
                      const Generator<SearchResult>::Yield& yield);
    void append(SearchResult&& result, Found& found);

    BlockReader& reader_;
    const FileList& files_;
    const Matcher& matcher_;
    const SearchOptions& options_;
    const unsigned num_threads_;
    const ScannedBlocks* scanned_ = nullptr;
    const GrammarScan* counted_ = nullptr;
    GrammarScan* windows_ = nullptr;
    const PartHeads* heads_ = nullptr;
    std::uint64_t block_size_ = 0;
    std::size_t next_file_ = 0;
    bool is_next_alone_ = false;
    std::size_t num_units_;  // to search at the next call
    std::uint64_t unit_size_;
    SearchTotals totals_;
    bool has_output_ = false;
    Spares<Worker> workers_;
    ContentCache contents_;
    std::unique_ptr<Generator<SearchResult>> alone_;  // of files that are searched alone
};

}  // namespace gompfs::search
