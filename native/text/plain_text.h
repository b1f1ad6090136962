// Cuts text that is not stored in parts into words, for statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/background_work.h"
#include "text/grammar.h"
#include "text/part_collector.h"
#include "text/part_words.h"
#include "text/tokenizer.h"

namespace gompfs {

// Collects the text of files into parts of 8 MiB, which threads cut into words. Memory holds the
// words of all text since the last call of take(), not the text.
class PlainText {
  public:
    PlainText(Tokenizer tokenizer, unsigned num_threads);
    PlainText(const PlainText&) = delete;
    PlainText& operator=(const PlainText&) = delete;

    // Adds the text of a file, in one or more pieces.
    void begin_file(std::uint64_t ino) { inos_.push_back(ino); }
    void add_bytes(std::string_view bytes) { collector_.add_bytes(bytes); }
    void end_file() { collector_.end_file(); }

    // Returns the words of what was added since the last call, as a grammar without rules. If a
    // file has not ended, the rest of it comes with the next call. After a call that was cancelled,
    // words are missing, and no other may be made.
    Grammar take();

  private:
    const unsigned num_threads_;
    const Tokenizer tokenizer_;
    PartCollector collector_;
    std::vector<std::uint64_t> inos_;         // of all files
    std::vector<FilePiece> pieces_;           // that take() has not returned
    std::optional<std::uint64_t> last_file_;  // of the pieces that it has returned
    std::size_t num_taken_ = 0;               // parts
    // Last, as its threads use the members above.
    BackgroundWork<CollectedPart, PartWords> cutting_;
};

}  // namespace gompfs
