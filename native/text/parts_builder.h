// Builds the parts of a segment from the text of many files, in bounded memory and on several
// threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/background_work.h"
#include "common/spill.h"
#include "common/spilled_items.h"
#include "text/part_collector.h"
#include "text/part_encoder.h"
#include "text/shared_tokens.h"
#include "text/tokenizer.h"

namespace gompfs {

struct InodeExtent {
    std::uint64_t ino, file_offset, stream_offset, size;
};

class PartsBuilder {
  public:
    struct Options {
        std::uint32_t block_size;
        std::uint32_t part_size;
        // What repeats in a part does not count for its size, up to this size in all.
        std::uint32_t max_part_size;
        unsigned num_threads;
        std::string directory;           // for a temporary file
        std::uint32_t max_shared_bytes;  // see SharedTokens
        int level;  // of gompresso-bit, for the tokens of heads and for text without a grammar
    };

    PartsBuilder(Tokenizer tokenizer, Options options);
    PartsBuilder(const PartsBuilder&) = delete;
    PartsBuilder& operator=(const PartsBuilder&) = delete;

    // Adds the text of files, one after another, each in one or more pieces.
    void add_bytes(std::string_view bytes) { collector_.add_bytes(bytes); }
    void end_file();
    // Says that an inode has the text of a file. Files are numbered from 0.
    void add_inode(std::uint64_t ino, std::uint64_t file) { inodes_.push_back({ino, file}); }

    // Ends the input. Afterwards: the extents of all inodes, the size of the text of each part, the
    // section of words, and the encoded parts in order, some at a time, until there are none.
    void finish();
    std::uint64_t num_inodes() const { return inodes_.size(); }
    // Returns the extents of inodes, in the order in which they were added. Part p begins at
    // part_starts[p] of the stream. A file without bytes has none.
    std::vector<InodeExtent> extents(std::uint64_t first_inode, std::uint64_t num_inodes,
                                     const std::vector<std::uint64_t>& part_starts) const;
    std::vector<std::uint64_t> part_sizes() const;
    std::vector<std::uint8_t> word_section() const;
    std::vector<EncodedPart> next_parts();  // a part without a grammar has an empty head
    // How many grammars and blocks did not decode to their text, and were encoded in another way.
    std::uint32_t num_wrong() const { return num_wrong_; }

  private:
    using Blocks = std::vector<std::vector<std::uint8_t>>;

    // A range of the temporary storage.
    struct Stored {
        std::uint64_t offset = 0, size = 0;
    };
    // The grammar of a part, or else its blocks in gompresso-bit, until all parts are known.
    struct Waiting {
        std::uint64_t text_size = 0;
        Stored grammar, blocks;
    };

    // The text of a file is that of an inode.
    struct InodeText {
        std::uint64_t ino, file;
    };

    Waiting prepare(const CollectedPart& part, PartGrammarBuilder& builder);
    Blocks encode_blocks(std::string_view text) const;
    Blocks encode_text_of(const PartGrammar& part, std::string_view text) const;
    bool may_be_smaller_as_blocks(std::string_view text, std::uint64_t grammar_size) const;
    Stored store(std::span<const std::uint8_t> bytes);
    std::vector<std::uint8_t> load(const Stored& stored) const;
    EncodedPart encode(const Waiting& part) const;

    const Options options_;
    const Tokenizer tokenizer_;
    PartCollector collector_;
    SharedTokens shared_;
    Spill spill_;
    std::uint64_t text_size_ = 0;            // of all files that have ended
    SpilledItems<std::uint64_t> file_ends_;  // of each file, in the text of all files
    SpilledItems<InodeText> inodes_;
    std::vector<Waiting> parts_;  // complete after finish()
    std::size_t next_part_ = 0;   // the first that encoding_ has not been given
    std::size_t num_encoding_ = 0;
    mutable std::atomic<std::uint32_t> num_wrong_ = 0;
    // Last, as their threads use the members above.
    std::optional<BackgroundWork<CollectedPart, Waiting>> preparing_;
    std::optional<BackgroundWork<std::size_t, EncodedPart>> encoding_;
};

}  // namespace gompfs
