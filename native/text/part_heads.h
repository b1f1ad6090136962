// The heads of an archive's parts, decoded when a block needs them, and kept while there is space.
// Parts whose blocks copy from the archive's dictionary have no heads: their symbols are the
// dictionary.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "codec/block.h"
#include "codec/symbol_table.h"
#include "common/bytes.h"
#include "common/fetch.h"
#include "text/word_section.h"

namespace gompfs {

// The positions of a section's blocks, and the sizes that they must have when they are decoded; no
// sizes if these do not matter.
struct SectionBlocks {
    std::vector<std::uint64_t> archive_offsets;
    std::vector<std::uint32_t> compressed_sizes;
    std::vector<std::uint32_t> uncompressed_sizes = {};
};

// The positions of a segment's heads, and of the blocks of its section of words.
struct SegmentHeads {
    std::vector<std::uint64_t> first_blocks;    // of each part, in the stream; then the end of all
    std::vector<std::uint64_t> head_offsets;    // archive offsets, by part
    std::vector<std::uint32_t> head_sizes;      // 0 for a part without a head
    std::vector<std::uint8_t> uses_dictionary;  // by part: 1 if its blocks need the dictionary
    SectionBlocks words;
};

// Any number of threads may open heads at once.
class PartHeads {
  public:
    // Keeps up to `capacity` bytes of decoded heads. Segments are in the order of their blocks.
    // `dictionary` are the blocks of the archive's dictionary; none if it has none. Reads sections
    // of words, and several heads, on up to num_threads threads.
    PartHeads(std::vector<SegmentHeads> segments, SectionBlocks dictionary, Fetch fetch,
              std::uint64_t capacity, unsigned num_threads);

    // The first block of the part with symbols that a block belongs to; the block itself if there
    // is none.
    std::uint64_t first_block_of(std::uint64_t block) const;

    // The symbols of the part that a block belongs to: of its head, or the dictionary. None if its
    // blocks need neither, or if the status is not ok.
    struct Opened {
        std::shared_ptr<const SymbolTable> symbols;
        BlockStatus status = BlockStatus::ok;
    };
    // Throw what `fetch` throws.
    Opened open(std::uint64_t block);
    std::vector<Opened> open_all(std::span<const std::uint64_t> blocks);

    // Where in the archive the head lies that `open` would read for a block. No bytes if it would
    // read none.
    struct Range {
        std::uint64_t archive_offset = 0, size = 0;
    };
    Range unread_head(std::uint64_t block);

    const std::vector<SegmentHeads>& segments() const { return segments_; }

    // The heads of successive parts, in one piece of memory.
    struct FetchedHeads {
        struct Head {
            Bytes payload = {};  // checked; none if the status is not ok
            std::uint32_t pool_size = 0;
            BlockStatus status = BlockStatus::ok;
        };
        FetchedBytes bytes;
        std::vector<Head> heads;
    };
    // Reads the heads of parts from `first` on, at once: that of this part, and those before `end`
    // that lie right after it and are not many bytes. Throws what `fetch` throws.
    FetchedHeads fetch_heads(std::size_t segment, std::size_t first, std::size_t end) const;

    // The global words and separators of a segment; none if their section is damaged. Throws what
    // `fetch` throws.
    const WordSection& words(std::size_t segment);
    // Whether a segment has a section of words with some bytes.
    bool has_words(std::size_t segment) const {
        return !segments_[segment].words.archive_offsets.empty();
    }

  private:
    struct Words {
        std::once_flag is_read;
        WordSection section;
    };
    struct Entry {
        std::shared_ptr<const SymbolTable> symbols;
        std::list<std::uint64_t>::iterator use;  // in uses_
    };

    // A part that has a head or uses the dictionary.
    struct Part {
        std::size_t segment, number;
        std::uint64_t first_block;
    };

    std::optional<Part> part_of(std::uint64_t block) const;
    Opened open_part(const Part& part);
    std::shared_ptr<const SymbolTable> kept(const Part& part);
    Opened read(const Part& part);
    WordSection read_words(const SectionBlocks& section) const;
    Opened dictionary();
    Opened read_dictionary() const;
    void keep(std::uint64_t key, const std::shared_ptr<const SymbolTable>& symbols);

    const std::vector<SegmentHeads> segments_;
    const SectionBlocks dictionary_blocks_;
    const Fetch fetch_;
    const std::uint64_t capacity_;
    const unsigned num_threads_;
    std::vector<std::unique_ptr<Words>> words_;  // by segment
    std::once_flag dictionary_is_read_;
    Opened dictionary_;
    std::mutex mutex_;                                  // protects what follows
    std::unordered_map<std::uint64_t, Entry> entries_;  // by the first block of the part
    std::list<std::uint64_t> uses_;                     // the keys of entries_, last used first
    std::uint64_t size_ = 0;
};

}  // namespace gompfs
