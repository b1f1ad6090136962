// A set of words, numbered in the order in which they came.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace gompfs {

// Mixes eight bytes at a time with wide multiplications. Words of hostile text can collide on purpose only
// at the price of a slow build.
inline std::uint64_t hash_word(std::string_view word) {
    constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15u;
    const auto mix = [](std::uint64_t left, std::uint64_t right) {
        const unsigned __int128 product = static_cast<unsigned __int128>(left) * right;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    };
    std::uint64_t hash = word.size() * kMultiplier;
    const char* bytes = word.data();
    std::size_t size = word.size();
    for (; size >= 8; bytes += 8, size -= 8) {
        std::uint64_t chunk;
        std::memcpy(&chunk, bytes, 8);
        hash = mix(hash ^ chunk, kMultiplier);
    }
    std::uint64_t tail = 0;
    std::memcpy(&tail, bytes, size);
    return mix(hash ^ tail, kMultiplier ^ 0xd1b54a32d192ed03u);
}

class WordTable {
   public:
    explicit WordTable(std::size_t expected_words = 1 << 10) {
        slots_.resize(std::bit_ceil(expected_words * 2));
        words_.reserve(expected_words);
    }

    // The number of a word; `keep` is called for a word that is new, and gives the view to remember.
    template <typename Keep>
    std::uint32_t find_or_add(std::string_view word, std::uint64_t hash, Keep&& keep) {
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
            Slot& slot = slots_[at];
            if (slot.number == 0) {
                words_.push_back(keep(word));
                slot = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(words_.size())};
                const auto number = slot.number - 1;
                if (words_.size() * 2 > slots_.size()) {
                    grow();
                }
                return number;
            }
            if (slot.tag == static_cast<std::uint32_t>(hash >> 32) && words_[slot.number - 1] == word) {
                return slot.number - 1;
            }
        }
    }

    void prefetch(std::uint64_t hash) const { __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]); }

    const std::vector<std::string_view>& words() const { return words_; }

   private:
    struct Slot {
        std::uint32_t tag = 0;
        std::uint32_t number = 0;  // 1 more than the word's; 0 for a free slot
    };

    void grow() {
        std::vector<Slot> slots(slots_.size() * 2);
        slots_.swap(slots);
        const std::size_t mask = slots_.size() - 1;
        for (std::uint32_t number = 1; number <= words_.size(); ++number) {
            const std::uint64_t hash = hash_word(words_[number - 1]);
            std::size_t at = hash & mask;
            while (slots_[at].number != 0) {
                at = (at + 1) & mask;
            }
            slots_[at] = {static_cast<std::uint32_t>(hash >> 32), number};
        }
    }

    std::vector<Slot> slots_;
    std::vector<std::string_view> words_;
};

// Keeps the bytes of words in large pieces.
class WordArena {
   public:
    std::string_view keep(std::string_view word) {
        if (word.size() > room_) {
            room_ = std::max<std::size_t>(word.size(), kPieceSize);
            pieces_.push_back(std::make_unique_for_overwrite<char[]>(room_));
            next_ = pieces_.back().get();
        }
        std::memcpy(next_, word.data(), word.size());
        const std::string_view kept(next_, word.size());
        next_ += word.size();
        room_ -= word.size();
        return kept;
    }

   private:
    static constexpr std::size_t kPieceSize = 1 << 20;

    std::vector<std::unique_ptr<char[]>> pieces_;
    char* next_ = nullptr;
    std::size_t room_ = 0;
};

}  // namespace gompfs
