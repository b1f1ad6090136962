// Builds the parts of a segment from the text of many files, in bounded memory and on several
// threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/cancellation.h"
#include "common/spill.h"
#include "grammar/tokenizer.h"
#include "parts/part_collector.h"
#include "parts/part_encoder.h"
#include "parts/shared_tokens.h"

namespace gompfs {

class PartsBuilder {
  public:
    struct Options {
        std::uint32_t block_size;
        std::uint32_t part_size;
        unsigned num_threads;
        std::string directory;  // for a temporary file
    };

    PartsBuilder(Tokenizer tokenizer, Options options);
    ~PartsBuilder();
    PartsBuilder(const PartsBuilder&) = delete;
    PartsBuilder& operator=(const PartsBuilder&) = delete;

    // Adds the text of files, one after another, each in one or more pieces.
    void add_bytes(std::string_view bytes) { collector_.add_bytes(bytes); }
    void end_file() { collector_.end_file(); }

    // Ends the input. Afterwards: the pieces of all files, the size of the text of each part, the
    // section of words, and the encoded parts in order, some at a time, until there are none.
    void finish();
    const std::vector<FilePiece>& pieces() const { return collector_.pieces(); }
    std::vector<std::uint64_t> part_sizes() const;
    std::vector<std::uint8_t> word_section() const;
    std::vector<EncodedPart> next_parts();  // a part without a grammar has an empty head

  private:
    // A range of the temporary storage.
    struct Stored {
        std::uint64_t offset = 0, size = 0;
    };
    // The grammar of a part, and its blocks in gompresso-bit, until all parts are known. One of the
    // two may be missing.
    struct Waiting {
        std::uint64_t text_size = 0;
        Stored grammar, blocks;
    };

    void dispatch(CollectedPart part);
    void work();
    Waiting prepare(const CollectedPart& part, PartGrammarBuilder& builder);
    bool may_be_smaller_as_blocks(std::string_view text, std::uint64_t estimate) const;
    Stored store(std::span<const std::uint8_t> bytes);
    std::vector<std::uint8_t> load(const Stored& stored) const;
    EncodedPart encode(const Waiting& part) const;

    Cancellation cancellation_;  // of threads_
    const Options options_;
    const Tokenizer tokenizer_;
    PartCollector collector_;
    SharedTokens shared_;
    Spill spill_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<CollectedPart> waiting_;
    std::size_t waiting_size_ = 0;  // of their text
    std::size_t num_running_ = 0;
    bool stopping_ = false;
    std::exception_ptr failure_;
    std::vector<std::thread> threads_;
    std::vector<Waiting> parts_;
    std::size_t next_part_ = 0;
};

}  // namespace gompfs
