// Finds the words and separators that two or more parts of a segment use, and numbers them for the
// section `words`.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "text/word_section.h"

namespace gompfs {

// Any number of threads may add parts. All must be added before number() is called.
class SharedTokens {
  public:
    // The shared words, with their spaces, and the shared separators have at most max_bytes each.
    explicit SharedTokens(std::uint32_t max_bytes = ~std::uint32_t{0});

    // Counts the tokens of a part, which must differ from each other.
    void add(const TokenList& tokens, const std::vector<std::uint8_t>& are_words);
    // Numbers the tokens that several parts use: most used first, and in byte order among tokens
    // that about as many parts use.
    void number(unsigned num_threads);
    // The numbers of words and separators: kNotShared for those that were counted once only, and
    // kNoRoom for those that several parts use but that are too many for the section.
    static constexpr std::uint32_t kNotShared = ~std::uint32_t{0};
    static constexpr std::uint32_t kNoRoom = kNotShared - 1;
    std::vector<std::uint32_t> find(const TokenList& tokens) const;

    const WordSection& section() const { return section_; }

  private:
    static constexpr int kNumShardsLog2 = 6;
    static constexpr std::size_t kNumShards = 1 << kNumShardsLog2;

    // A token that was counted more than once.
    struct Shared {
        std::string token;
        std::uint32_t count;
        std::uint32_t number;
        bool is_word;
    };
    // Hashes of tokens with their index in `shared` plus 1, or 0 if they were counted once.
    struct Shard {
        std::mutex mutex;
        std::vector<std::uint64_t> hashes;
        std::vector<std::uint32_t> indexes;
        std::size_t num_used = 0;
        std::vector<Shared> shared;

        std::size_t slot_of(std::uint64_t hash) const;
        void prefetch(std::uint64_t hash) const;
        void prefetch_shared(std::uint64_t hash) const;
        void count(std::uint64_t hash, std::string_view token, bool is_word);
        void grow();
    };

    static void sort_tokens(std::vector<Shared*>& tokens);
    std::uint64_t hash_of(std::string_view token) const;
    std::uint32_t find(std::uint64_t hash, std::string_view token) const;
    static std::size_t shard_of(std::uint64_t hash) { return hash >> (64 - kNumShardsLog2); }

    const std::uint32_t max_bytes_;
    std::uint64_t seed_;
    std::array<Shard, kNumShards> shards_;
    WordSection section_;
};

}  // namespace gompfs
