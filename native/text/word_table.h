// A hash table of words, numbered in the order in which they were added.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/little_endian.h"

namespace gompfs {

// A word prepared for a look-up. For a word of up to eight bytes, `head` is the word itself, padded
// with zeros; for a longer word it is a hash. Hostile text can make hashes collide, which slows the
// build down but cannot change its result.
struct WordKey {
    std::string_view word;
    std::uint64_t head = 0;
    std::uint64_t hash = 0;

    WordKey() = default;
    explicit WordKey(std::string_view text) : word(text) {
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(word.data());
        const std::size_t size = word.size();
        if (size <= 8) {
            head = up_to_8_bytes(bytes, size);
        } else {
            for (std::size_t at = 0; at < size - 8; at += 8) {
                head = mix(head ^ load<std::uint64_t>(bytes + at));
            }
            head = mix(head ^ load<std::uint64_t>(bytes + size - 8));
        }
        hash = mix(head + size);
    }

    static std::uint64_t mix(std::uint64_t value) {
        const unsigned __int128 product =
            static_cast<unsigned __int128>(value ^ 0xd1b54a32d192ed03u) * 0x9e3779b97f4a7c15u;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }

  private:
    // Bytes that are loaded twice come to the same bits.
    static std::uint64_t up_to_8_bytes(const std::uint8_t* bytes, std::size_t size) {
        if (size >= 4) {
            const std::uint64_t last = load<std::uint32_t>(bytes + size - 4);
            return load<std::uint32_t>(bytes) | last << (8 * (size - 4));
        }
        if (size >= 2) {
            const std::uint64_t last = load<std::uint16_t>(bytes + size - 2);
            return load<std::uint16_t>(bytes) | last << (8 * (size - 2));
        }
        return size == 0 ? 0 : *bytes;
    }
};

class WordTable {
  public:
    explicit WordTable(std::size_t expected_words = 1 << 10)
        : slots_(std::bit_ceil(expected_words * 2)) {
        words_.reserve(expected_words);
    }

    // Returns the number of a word, and adds it if it is new. The bytes of a new word must stay
    // valid.
    std::uint32_t find_or_add(const WordKey& key) {
        const std::size_t mask = slots_.size() - 1;
        const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(key.word.size(), ~0u));
        for (std::size_t at = key.hash & mask;; at = (at + 1) & mask) {
            Slot& slot = slots_[at];
            if (slot.size == 0) {
                const auto number = static_cast<std::uint32_t>(words_.size());
                words_.push_back(key.word);
                slot = {key.head, size, number};
                if (words_.size() * 2 > slots_.size()) {
                    grow();
                }
                return number;
            }
            if (slot.head == key.head && slot.size == size &&
                (size <= 8 || words_[slot.number] == key.word)) {
                return slot.number;
            }
        }
    }

    // Returns the number of a word; 2^32 - 1 if it was not added.
    std::uint32_t find(const WordKey& key) const {
        const std::size_t mask = slots_.size() - 1;
        const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(key.word.size(), ~0u));
        for (std::size_t at = key.hash & mask; slots_[at].size != 0; at = (at + 1) & mask) {
            const Slot& slot = slots_[at];
            if (slot.head == key.head && slot.size == size &&
                (size <= 8 || words_[slot.number] == key.word)) {
                return slot.number;
            }
        }
        return ~std::uint32_t{0};
    }

    void clear() {
        std::fill(slots_.begin(), slots_.end(), Slot{});
        words_.clear();
    }

    void prefetch(const WordKey& key) const {
        __builtin_prefetch(&slots_[key.hash & (slots_.size() - 1)]);
    }

    const std::vector<std::string_view>& words() const { return words_; }

  private:
    struct Slot {
        std::uint64_t head = 0;
        std::uint32_t size = 0;  // of the word; 0 for a free slot
        std::uint32_t number = 0;
    };

    void grow() {
        std::vector<Slot> slots(slots_.size() * 2);
        slots_.swap(slots);
        const std::size_t mask = slots_.size() - 1;
        for (const Slot& slot : slots) {
            if (slot.size != 0) {
                std::size_t at = WordKey::mix(slot.head + words_[slot.number].size()) & mask;
                while (slots_[at].size != 0) {
                    at = (at + 1) & mask;
                }
                slots_[at] = slot;
            }
        }
    }

    std::vector<Slot> slots_;
    std::vector<std::string_view> words_;
};

}  // namespace gompfs
