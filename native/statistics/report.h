// The text of a virtual file.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gompfs {

// A text that is made piece by piece, so that only the pieces in use are in memory.
class Report {
  public:
    static constexpr std::size_t kPieceSize = std::size_t{1} << 20;  // approximate size in bytes

    virtual ~Report() = default;
    virtual std::size_t num_pieces() const = 0;
    // Whether a piece with this index exists. For the first piece, this may be known earlier than
    // the number of pieces.
    virtual bool has_piece(std::size_t index) const { return index < num_pieces(); }
    // Makes a piece. Several threads may make pieces at once, and a piece may be made several
    // times.
    virtual std::string piece(std::size_t index) const = 0;
    // The size of the whole text in bytes, if it is known before the text is made.
    virtual std::optional<std::uint64_t> size() const { return std::nullopt; }
};

inline void append_count(std::string& text, std::uint64_t count) {
    char digits[20];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, count).ptr);
}

}  // namespace gompfs
