// Counts in how many parts a token occurs; see shared_tokens.h.
//
// A token is kept as a 64-bit hash until a second part has it; so tokens of one part take 12 bytes
// each. The seed is random, because hostile text could otherwise contain words of equal hashes. If
// two words have the same hash all the same, one of them is found to differ from the token that is
// kept and stays in the heads of its parts: the text is the same, and the section has one word
// less.
#include "text/shared_tokens.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <random>
#include <utility>

#include "common/failures.h"
#include "text/word_prefix.h"

namespace gompfs {
namespace {

constexpr std::size_t kFirstSlots = 1 << 8;  // of a shard

// Tokens are far apart in memory, so a token is fetched to the cache while others are looked up.
constexpr int kPrefetchDistance = 12;

// Two classes per octave: parts that share a class are "about as many".
int frequency_class(std::uint32_t count) {
    const int octave = std::bit_width(count) - 1;
    return 2 * octave + static_cast<int>(octave != 0 ? count >> (octave - 1) & 1 : 0);
}

}  // namespace

SharedTokens::SharedTokens(std::uint32_t max_bytes) : max_bytes_(max_bytes) {
    std::random_device random;
    seed_ = std::uint64_t{random()} << 32 | random();
    for (Shard& shard : shards_) {
        shard.hashes.resize(kFirstSlots);
        shard.indexes.resize(kFirstSlots);
    }
}

// Puts tokens into byte order.
void SharedTokens::sort_tokens(std::vector<Shared*>& tokens) {
    std::vector<std::string_view> texts;
    std::vector<WordPrefix> prefixes;
    texts.reserve(tokens.size());
    prefixes.reserve(tokens.size());
    for (const Shared* const shared : tokens) {
        prefixes.emplace_back(shared->token, static_cast<std::uint32_t>(texts.size()));
        texts.push_back(shared->token);
    }
    sort_prefixes(prefixes, texts);
    std::vector<Shared*> sorted;
    sorted.reserve(tokens.size());
    for (const WordPrefix& prefix : prefixes) {
        sorted.push_back(tokens[prefix.number]);
    }
    tokens.swap(sorted);
}

// 0 marks a free slot.
std::uint64_t SharedTokens::hash_of(std::string_view token) const {
    const std::uint64_t hash = XXH3_64bits_withSeed(token.data(), token.size(), seed_);
    return hash == 0 ? 1 : hash;
}

std::size_t SharedTokens::Shard::slot_of(std::uint64_t hash) const {
    const std::size_t mask = hashes.size() - 1;
    std::size_t slot = hash & mask;
    while (hashes[slot] != 0 && hashes[slot] != hash) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

// Fetches to the cache where the search for a hash begins.
void SharedTokens::Shard::prefetch(std::uint64_t hash) const {
    const std::size_t slot = hash & (hashes.size() - 1);
    __builtin_prefetch(&hashes[slot]);
    __builtin_prefetch(&indexes[slot]);
}

// Fetches the token to the cache that has this hash, if that is where its search begins.
void SharedTokens::Shard::prefetch_shared(std::uint64_t hash) const {
    const std::size_t slot = hash & (hashes.size() - 1);
    if (hashes[slot] == hash && indexes[slot] != 0) {
        __builtin_prefetch(&shared[indexes[slot] - 1]);
    }
}

void SharedTokens::Shard::grow() {
    std::vector<std::uint64_t> old_hashes(hashes.size() * 2);
    std::vector<std::uint32_t> old_indexes(hashes.size() * 2);
    hashes.swap(old_hashes);
    indexes.swap(old_indexes);
    for (std::size_t index = 0; index < old_hashes.size(); ++index) {
        if (old_hashes[index] != 0) {
            const std::size_t slot = slot_of(old_hashes[index]);
            hashes[slot] = old_hashes[index];
            indexes[slot] = old_indexes[index];
        }
    }
}

void SharedTokens::Shard::count(std::uint64_t hash, std::string_view token, bool is_word) {
    const std::size_t slot = slot_of(hash);
    if (hashes[slot] == 0) {
        hashes[slot] = hash;
        if (++num_used * 4 > hashes.size() * 3) {
            grow();
        }
        return;
    }
    if (indexes[slot] == 0) {
        shared.push_back({std::string(token), 1, 0, is_word});
        indexes[slot] = static_cast<std::uint32_t>(shared.size());
    }
    ++shared[indexes[slot] - 1].count;
}

void SharedTokens::add(const TokenList& tokens, const std::vector<std::uint8_t>& are_words) {
    std::vector<std::uint64_t> hashes(tokens.size());
    std::array<std::uint32_t, kNumShards + 1> starts{};  // of shards in `by_shard`
    for (std::uint32_t token = 0; token < tokens.size(); ++token) {
        hashes[token] = hash_of(tokens[token]);
        ++starts[shard_of(hashes[token]) + 1];
    }
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<std::uint32_t> by_shard(tokens.size());
    std::array<std::uint32_t, kNumShards + 1> next = starts;
    for (std::uint32_t token = 0; token < tokens.size(); ++token) {
        by_shard[next[shard_of(hashes[token])]++] = token;
    }
    for (std::size_t number = 0; number < kNumShards; ++number) {
        Shard& shard = shards_[number];
        const std::lock_guard lock(shard.mutex);
        for (std::uint32_t index = starts[number]; index < starts[number + 1]; ++index) {
            if (index + kPrefetchDistance < by_shard.size()) {
                shard.prefetch(hashes[by_shard[index + kPrefetchDistance]]);
            }
            const std::uint32_t token = by_shard[index];
            shard.count(hashes[token], tokens[token], are_words[token] != 0);
        }
    }
}

void SharedTokens::number(unsigned num_threads) {
    // Words before separators; of each kind, the most used ones first.
    std::map<std::pair<bool, int>, std::vector<Shared*>> groups;
    for (Shard& shard : shards_) {
        for (Shared& shared : shard.shared) {
            groups[{!shared.is_word, -frequency_class(shared.count)}].push_back(&shared);
        }
    }
    // The groups of rare tokens are the largest ones, so they are sorted first.
    std::vector<std::vector<Shared*>*> rare_first;
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
        rare_first.push_back(&group->second);
    }
    parallel_for_all(rare_first.size(), num_threads,
                     [&](std::size_t index) { sort_tokens(*rare_first[index]); });
    TokenList words(TokenList::Kind::words), separators;
    for (const auto& [key, group] : groups) {
        for (Shared* const shared : group) {
            TokenList& list = shared->is_word ? words : separators;
            const bool has_room = list.has_room(shared->token, max_bytes_);
            shared->number = has_room ? list.size() : kNoRoom;
            if (has_room) {
                list.append(shared->token);
            }
        }
    }
    section_ = WordSection(std::move(words), std::move(separators));
}

std::uint32_t SharedTokens::find(std::uint64_t hash, std::string_view token) const {
    const Shard& shard = shards_[shard_of(hash)];
    const std::size_t slot = shard.slot_of(hash);
    if (shard.hashes[slot] == 0 || shard.indexes[slot] == 0) {
        return kNotShared;
    }
    const Shared& shared = shard.shared[shard.indexes[slot] - 1];
    return shared.token == token ? shared.number : kNotShared;
}

std::vector<std::uint32_t> SharedTokens::find(const TokenList& tokens) const {
    std::vector<std::uint64_t> hashes(tokens.size());
    for (std::uint32_t token = 0; token < tokens.size(); ++token) {
        hashes[token] = hash_of(tokens[token]);
    }
    std::vector<std::uint32_t> numbers(tokens.size());
    for (std::uint32_t token = 0; token < tokens.size(); ++token) {
        if (token + 2 * kPrefetchDistance < tokens.size()) {
            const std::uint64_t later = hashes[token + 2 * kPrefetchDistance];
            shards_[shard_of(later)].prefetch(later);
            const std::uint64_t next = hashes[token + kPrefetchDistance];
            shards_[shard_of(next)].prefetch_shared(next);
        }
        numbers[token] = find(hashes[token], tokens[token]);
    }
    return numbers;
}

}  // namespace gompfs
