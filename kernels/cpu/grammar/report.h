// The text of a virtual file.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gompfs {

// A text that is made piece by piece, so that no more of it is in memory than somebody wants now.
class Report {
  public:
    static constexpr std::size_t kPieceSize = std::size_t{1} << 20;  // about so many bytes

    virtual ~Report() = default;
    virtual std::size_t num_pieces() const = 0;
    // Whether there is one at an index: for the first one, that may be known sooner than their
    // number.
    virtual bool has_piece(std::size_t index) const { return index < num_pieces(); }
    // Pieces may be made by several threads at once, and more than once.
    virtual std::string piece(std::size_t index) const = 0;
    // Of the whole text in bytes, if that is known before it is made.
    virtual std::optional<std::uint64_t> size() const { return std::nullopt; }
};

inline void append_count(std::string& text, std::uint64_t count) {
    char digits[20];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, count).ptr);
}

}  // namespace gompfs
