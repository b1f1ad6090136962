// Expands the symbols of a head into a pool; see head.h. Rules are expanded in the order of their
// numbers, so every symbol of a rule has its bytes in the pool already.
//
// Everything goes to its rank at once. A rank that has no expansion yet is that of a symbol with a
// higher number. So a rule is valid if the expansions of its symbols begin before those of its
// level. (A splitter has no bytes and counts as one that has no expansion.)
#include <algorithm>
#include <cstring>
#include <memory>

#include "codec/copy.h"
#include "parts/head.h"
#include "parts/head_arrays.h"
#include "parts/word_expander.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

constexpr std::size_t kCopySize = 32;
static_assert(kCopySize <= SymbolTable::kPoolMargin);
static_assert(WordExpander::kMargin <= SymbolTable::kPoolMargin);

// The end of what was added so far. Loops have a copy of their own, which stays in registers.
class Position {
  public:
    Position() = default;
    Position(SymbolTable& table, Bytes classes, std::size_t pool_size)
        : pool_(table.pool.data()),
          expansions_(table.expansions.data()),
          classes_(classes.data()),
          num_symbols_(classes.size()),
          pool_size_(pool_size) {}

    std::uint8_t* bytes() const { return pool_ + size_; }  // of the next symbol
    std::size_t size() const { return size_; }             // of the pool so far
    std::size_t room() const { return pool_size_ - size_; }

    // Adds the next symbol, whose bytes are there already. Returns false if its rank is too high.
    [[gnu::always_inline]] bool add(std::size_t size, bool begins_with_separator,
                                    bool ends_with_word, RankCounter& ranks) {
        const std::uint32_t rank = ranks.next(classes_[symbol_++]);
        if (rank >= num_symbols_) [[unlikely]] {
            return false;
        }
        expansions_[rank] =
            Expansion(static_cast<std::uint32_t>(size_), static_cast<std::uint32_t>(size),
                      begins_with_separator, ends_with_word);
        size_ += size;
        return true;
    }

  private:
    std::uint8_t* pool_ = nullptr;
    Expansion* expansions_ = nullptr;
    const std::uint8_t* classes_ = nullptr;
    std::size_t num_symbols_ = 0;
    std::size_t pool_size_ = 0;
    std::size_t size_ = 0;
    std::size_t symbol_ = 0;  // the next one
};

class PoolBuilder {
  public:
    PoolBuilder(const HeadArrays& head, std::size_t pool_size)
        : head_(head), pool_size_(pool_size), num_symbols_(head.num_symbols()) {}

    // Returns whether the pool has exactly its size and all symbols exist.
    bool build(const WordSection& words);
    SymbolTable take() { return std::move(table_); }

  private:
    bool add_local_words(Bytes& rest);
    bool add_local_separators(Bytes rest);
    bool add_global_tokens(const TokenList& tokens, std::span<const std::uint32_t> numbers,
                           bool are_words);
    bool add_rules();
    bool add_rule(std::uint32_t first_rank, std::span<const std::uint32_t> other_ranks,
                  std::size_t level_start);

    const HeadArrays& head_;
    const std::size_t pool_size_;
    const std::size_t num_symbols_;
    RankCounter ranks_;
    SymbolTable table_;
    Position position_;
};

bool PoolBuilder::build(const WordSection& words) {
    if (pool_size_ == 0 || pool_size_ > kMaxPoolSize) {
        return false;
    }
    table_.pool.resize(pool_size_ + SymbolTable::kPoolMargin);
    table_.expansions.resize(num_symbols_);
    table_.code = head_.rank_code();
    position_ = Position(table_, head_.classes, pool_size_);
    Bytes rest = head_.token_bytes;
    if ((head_.has_splitter && !position_.add(0, true, false, ranks_)) || !add_local_words(rest) ||
        !add_global_tokens(words.words(), head_.global_words, true) ||
        !add_local_separators(rest) ||
        !add_global_tokens(words.separators(), head_.global_separators, false) || !add_rules()) {
        return false;
    }
    std::fill_n(&table_.pool[pool_size_], SymbolTable::kPoolMargin, std::uint8_t{0});
    return position_.room() == 0 && ranks_.is_complete(num_symbols_);
}

bool PoolBuilder::add_local_words(Bytes& rest) {
    WordExpander expander(rest);
    Position at = position_;
    for (const std::uint32_t prefix : head_.prefixes) {
        const std::size_t size = expander.expand(prefix, at.bytes(), at.room());
        if (size == 0 || !at.add(size, false, true, ranks_)) {
            return false;
        }
    }
    position_ = at;
    rest = expander.rest();
    return true;
}

// Tokens are far apart in the list, so each of them is fetched to the cache some time before it is
// used.
bool PoolBuilder::add_global_tokens(const TokenList& tokens, std::span<const std::uint32_t> numbers,
                                    bool are_words) {
    constexpr std::size_t kDistance = 16;
    // The numbers ascend.
    if (!numbers.empty() && numbers.back() >= tokens.size()) {
        return false;
    }
    const std::uint8_t* const tokens_end = tokens.bytes_end();
    Position at = position_;
    for (std::size_t index = 0; index < numbers.size(); ++index) {
        if (index + 2 * kDistance < numbers.size()) {
            tokens.prefetch_start(numbers[index + 2 * kDistance]);
            tokens.prefetch_bytes(numbers[index + kDistance]);
        }
        const Bytes token = tokens.stored(numbers[index]);
        if (token.size() > at.room()) {
            return false;
        }
        if (token.size() <= kCopySize && tokens_end - token.data() >= std::ptrdiff_t{kCopySize})
            [[likely]] {
            copy_fixed<16>(at.bytes(), token.data());
            copy_fixed<16>(at.bytes() + 16, token.data() + 16);
        } else {
            std::memcpy(at.bytes(), token.data(), token.size());
        }
        if (!at.add(token.size(), !are_words, are_words, ranks_)) {
            return false;
        }
    }
    position_ = at;
    return true;
}

bool PoolBuilder::add_local_separators(Bytes rest) {
    Position at = position_;
    for (const std::uint32_t number : head_.separator_sizes) {
        const std::size_t size = std::size_t{number} + 1;
        if (size > rest.size() || size > kMaxExpansionSize || size > at.room()) {
            return false;
        }
        std::memcpy(at.bytes(), rest.data(), size);
        rest = rest.subspan(size);
        if (!at.add(size, true, false, ranks_)) {
            return false;
        }
    }
    position_ = at;
    return rest.empty();
}

bool PoolBuilder::add_rules() {
    std::span<const std::uint32_t> others = head_.other_ranks;
    std::size_t rule = 0;
    for (const std::uint32_t level_size : head_.level_sizes) {
        const std::size_t level_start = position_.size();
        for (const std::size_t end = rule + level_size; rule != end; ++rule) {
            const std::size_t num_others = std::size_t{head_.rule_sizes[rule]} + 1;
            if (!add_rule(head_.first_ranks[rule], others.first(num_others), level_start)) {
                return false;
            }
            others = others.subspan(num_others);
        }
    }
    return true;
}

bool PoolBuilder::add_rule(std::uint32_t first_rank, std::span<const std::uint32_t> other_ranks,
                           std::size_t level_start) {
    std::uint8_t* const pool = table_.pool.data();
    const Expansion* const expansions = table_.expansions.data();
    const std::size_t start = position_.size();
    const std::size_t limit = std::min(pool_size_, start + kMaxExpansionSize);
    std::size_t at = start;
    const auto append = [&](const Expansion& symbol) {
        if (symbol.size() == 0 || symbol.offset() >= level_start || symbol.size() > limit - at)
            [[unlikely]] {
            return false;
        }
        if (symbol.size() <= kCopySize) [[likely]] {
            copy_fixed<16>(pool + at, pool + symbol.offset());
            copy_fixed<16>(pool + at + 16, pool + symbol.offset() + 16);
        } else {
            std::memcpy(pool + at, pool + symbol.offset(), symbol.size());
        }
        at += symbol.size();
        return true;
    };
    const Expansion first = expansions[first_rank];
    Expansion before = first;
    if (!append(first)) {
        return false;
    }
    for (const std::uint32_t rank : other_ranks) {
        const Expansion symbol = expansions[rank];
        at -= symbol.takes_space_of(before);
        if (!append(symbol)) {
            return false;
        }
        before = symbol;
    }
    return position_.add(at - start, first.begins_with_separator(), before.ends_with_word(),
                         ranks_);
}

}  // namespace

std::optional<SymbolTable> read_symbols(Bytes payload, const WordSection& words,
                                        std::size_t pool_size) {
    thread_local const auto arrays = std::make_unique<HeadArrays>();
    if (!arrays->read(payload)) {
        return std::nullopt;
    }
    PoolBuilder builder(*arrays, pool_size);
    if (!builder.build(words)) {
        return std::nullopt;
    }
    return builder.take();
}

}  // namespace gompfs
