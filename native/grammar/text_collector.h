// Collects the text of files into parts of a grammar.
//
// Files are appended to the text of a part. When the text has 8 MiB, the part is passed on; a
// larger file is cut after a complete word and continues in the next part. Cuts depend on the text
// only, not on the pieces in which it arrives or on timing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "common/large_vector.h"
#include "grammar/tokenizer.h"

namespace gompfs {

// The text of a part: of whole files, or of a piece of one file.
struct PartText {
    std::size_t number = 0;  // of the part
    bool continues = false;  // whether the first file began in the part before
    LargeVector<char> bytes;
    std::vector<std::uint64_t> inos;
    std::vector<std::size_t> ends;  // end of each file, in bytes

    std::string_view view() const { return {bytes.data(), bytes.size()}; }
};

class TextCollector {
  public:
    using Take = std::function<void(std::unique_ptr<PartText>)>;

    // Passes the text of each part to `take`. The tokenizer must outlive the object.
    TextCollector(const Tokenizer& tokenizer, Take take)
        : tokenizer_(tokenizer), take_(std::move(take)), text_(std::make_unique<PartText>()) {}

    // Adds a file in pieces. Throws std::logic_error if the calls are not in this order.
    void begin_file(std::uint64_t ino);
    void add_bytes(std::string_view bytes);
    void end_file();

    bool is_in_file() const { return in_file_; }
    // Passes on what was collected, if there is anything. Throws std::logic_error if a file is
    // open.
    void flush();
    // Ends the input: all further calls throw std::logic_error.
    void close() { closed_ = true; }

  private:
    void require(bool in_file) const;
    void search_from(std::size_t size);
    void cut_file();
    void pass_on();

    const Tokenizer& tokenizer_;
    const Take take_;
    std::unique_ptr<PartText> text_;  // being collected
    bool in_file_ = false;
    bool closed_ = false;
    std::size_t next_cut_ = 0;  // size of text_ at which the present file is cut
    // Bytes of text_ that are known to contain no position to cut the present file.
    std::size_t searched_ = 0;
};

}  // namespace gompfs
