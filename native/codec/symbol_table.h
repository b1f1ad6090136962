// The data that blocks need besides their own payload: the symbols of a part of text, as blocks of
// the codec gompresso-tadoc refer to them, or a dictionary (dictionary.h), from which blocks of
// gompresso-bit-dictionary copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "codec/class_code.h"
#include "common/large_vector.h"

namespace gompfs {

// The expansion of a symbol: bytes of the pool, and facts for concatenation
// (docs/format.md, section 9).
class Expansion {
  public:
    Expansion() = default;
    Expansion(std::uint32_t offset, std::uint32_t size, bool begins_with_separator,
              bool ends_with_word)
        : bits_(offset | std::uint64_t{size} << 32 | std::uint64_t{ends_with_word} << 62 |
                std::uint64_t{begins_with_separator} << 63) {}

    std::uint32_t offset() const { return static_cast<std::uint32_t>(bits_); }
    std::uint32_t size() const { return static_cast<std::uint32_t>(bits_ >> 32) & 0x3fffffff; }
    bool begins_with_separator() const { return bits_ >> 63 != 0; }
    bool ends_with_word() const { return (bits_ >> 62 & 1) != 0; }
    // 1 if the space at the end of `before` is taken away when this symbol follows it, else 0.
    std::uint32_t takes_space_of(const Expansion& before) const {
        return static_cast<std::uint32_t>(bits_ >> 63 & before.bits_ >> 62);
    }

  private:
    std::uint64_t bits_ = 0;
};

// The decoded head of a part, or a dictionary, which is a pool without symbols.
struct SymbolTable {
    // After the pool there are this many bytes more, so that a copy of fixed size may begin
    // anywhere.
    static constexpr std::size_t kPoolMargin = 64;

    std::vector<Expansion> expansions;  // by rank
    LargeVector<std::uint8_t> pool;     // with kPoolMargin bytes at the end
    ClassTable code;                    // of the ranks in blocks
    std::uint32_t dictionary_size = 0;  // of a dictionary, without what follows it in the pool
    // No other table of this process has or had the same number, except copies of this one.
    std::uint64_t number = next_number();

    bool is_dictionary() const { return dictionary_size != 0; }

    std::size_t size_in_memory() const {
        return sizeof *this + expansions.capacity() * sizeof(Expansion) + pool.capacity() +
               code.entries.capacity() * sizeof(std::uint64_t);
    }

  private:
    static std::uint64_t next_number() {
        static std::atomic<std::uint64_t> last = 0;
        return ++last;
    }
};

}  // namespace gompfs
