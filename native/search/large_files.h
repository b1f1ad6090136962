// Searches large files that follow each other in the list of files, on all threads, as InOrder
// does: the pieces of the files are made in order, read and searched by any thread, and taken in
// order. While the last pieces of a file are searched, the first ones of the next file are too.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>

#include "blocks/block_reader.h"
#include "common/generator.h"
#include "common/spares.h"
#include "search/content_cache.h"
#include "search/files/file_list.h"
#include "search/gpu/scanned_blocks.h"
#include "search/large_file_search.h"
#include "search/match/matcher.h"
#include "search/print/search_options.h"
#include "search/search_result.h"
#include "search/text_piece.h"

namespace gompfs::search {

class LargeFiles {
  public:
    struct File {
        const ListedFile& listed;
        std::shared_ptr<ContentRecord> record = std::make_shared<ContentRecord>();
        SearchResult result = {};
        std::unique_ptr<LineSink> sink = nullptr;
        std::unique_ptr<LargeFileSearch> search = nullptr;
    };
    struct Item {
        std::shared_ptr<File> file;
        std::unique_ptr<TextPiece> piece;
        std::size_t num_bytes;
    };

    struct Search {
        BlockReader& reader;
        const FileList& files;
        const Matcher& matcher;
        const SearchOptions& options;
        unsigned num_threads;
        const ScannedBlocks* scanned;  // may be nullptr
        ContentCache& contents;
    };

    // Searches files from `first` on, up to `end`. Passes results on to `yield`.
    LargeFiles(const Search& search, std::size_t first, std::size_t end,
               const Generator<SearchResult>::Yield& yield)
        : search_(search), next_(first), end_(end), yield_(yield) {}

    bool has_room() const;
    std::unique_ptr<Item> make();
    void work(Item& item);
    void take(std::unique_ptr<Item> item);

  private:
    using Clock = std::chrono::steady_clock;

    std::shared_ptr<File> open(const ListedFile& file);
    void hand_on(File& file);

    const Search search_;
    std::size_t next_;  // file
    const std::size_t end_;
    const Generator<SearchResult>::Yield& yield_;
    PieceMemory memory_;
    Spares<MatchSession> sessions_;
    std::shared_ptr<File> last_;  // whose pieces are made
    std::atomic<std::size_t> num_bytes_{0};
    Clock::time_point handed_on_;
};

}  // namespace gompfs::search
