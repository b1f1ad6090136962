// Cuts the text of files into parts.
//
// Files are appended to the text of a part until it is full. A file that does not fit is cut at the
// beginning of a word, so that no token is in two parts; a file that has just begun moves to the
// next part as a whole. Cuts depend on the text only, not on the pieces in which it arrives.
//
// Text that is in a part already takes little space and time there: symbols for it exist. So what
// repeats does not count for the size of a part, up to a maximum, and as much new text may follow:
// it most likely repeats the text of the part, too, in smaller pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/repeated_lines.h"
#include "text/tokenizer.h"

namespace gompfs {

// The text of a part. The last file continues in the next part if the text does not end with it.
struct CollectedPart {
    std::uint32_t number = 0;
    std::string text;
    std::vector<std::size_t> file_ends;
};

// The position of a piece of a file: a part, and an offset in the part's text.
struct FilePiece {
    std::uint64_t file;
    std::uint32_t part;
    std::uint64_t offset;
    std::uint64_t size;
};

class PartCollector {
  public:
    using Take = std::function<void(CollectedPart)>;

    // Passes each part to `take`. The tokenizer must outlive the object.
    PartCollector(const Tokenizer& tokenizer, std::size_t part_size, std::size_t max_part_size,
                  Take take)
        : tokenizer_(tokenizer),
          part_size_(part_size),
          max_part_size_(max_part_size),
          take_(std::move(take)) {
        repeated_.clear();
    }

    // Adds to the present file. Files are numbered from 0.
    void add_bytes(std::string_view bytes);
    void end_file();
    // Whether it has bytes of a file that has not ended.
    bool is_in_file() const { return part_.text.size() != file_start_; }
    // Passes on what was collected, if there is anything. No file may be open.
    void flush();

    // Returns the pieces that were cut off since the last call, in order. Files without bytes have
    // none.
    std::vector<FilePiece> take_pieces() { return std::exchange(pieces_, {}); }

  private:
    std::size_t limit() const;
    void cut_off_full_parts(bool is_end);
    bool cut();
    std::size_t last_word_start() const;
    void pass_on(std::size_t size);

    const Tokenizer& tokenizer_;
    const std::size_t part_size_, max_part_size_;
    const Take take_;
    CollectedPart part_;
    RepeatedLines repeated_;
    std::size_t file_start_ = 0;  // of the present file, or of its piece in this part, in the text
    std::size_t searched_ = 0;    // no cut is possible before this offset
    std::uint64_t file_ = 0;      // the present file
    std::vector<FilePiece> pieces_;
};

}  // namespace gompfs
