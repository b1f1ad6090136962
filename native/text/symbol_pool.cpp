// Expands the symbols of a head into a pool; see head.h. Rules are expanded in the order of their
// numbers, so every symbol of a rule has its bytes in the pool already.
//
// Everything goes to its rank at once. A rank that has no expansion yet is that of a symbol with a
// higher number. So a rule is valid if the expansions of its symbols begin before those of its
// level. Those that are not there yet begin nowhere, and a splitter, which no rule may have, begins
// at the end of the pool.
#include <algorithm>
#include <cstring>
#include <memory>

#include "common/copy.h"
#include "shared/format_constants.h"
#include "text/head.h"
#include "text/head_arrays.h"
#include "text/word_expander.h"

namespace gompfs {
namespace {

constexpr std::size_t kCopySize = 32;
static_assert(kCopySize <= SymbolTable::kPoolMargin && kChunkSize <= SymbolTable::kPoolMargin);
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

    void skip_symbol() { ++symbol_; }

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
    bool add_splitter();
    bool add_local_words(Bytes& rest);
    bool add_local_separators(Bytes rest);
    bool add_global_tokens(const TokenList& tokens, std::span<const std::uint32_t> numbers,
                           bool are_words);
    bool add_rules();

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
    table_.expansions.assign(num_symbols_, Expansion(~std::uint32_t{0}, 0, false, false));
    table_.code = head_.rank_code();
    position_ = Position(table_, head_.classes, pool_size_);
    Bytes rest = head_.token_bytes;
    if (!add_splitter() || !add_local_words(rest) ||
        !add_global_tokens(words.words(), head_.global_words, true) ||
        !add_local_separators(rest) ||
        !add_global_tokens(words.separators(), head_.global_separators, false) || !add_rules()) {
        return false;
    }
    std::fill_n(&table_.pool[pool_size_], SymbolTable::kPoolMargin, std::uint8_t{0});
    return position_.room() == 0 && ranks_.is_complete(num_symbols_);
}

bool PoolBuilder::add_splitter() {
    if (!head_.has_splitter) {
        return true;
    }
    const std::uint32_t rank = ranks_.next(head_.classes[0]);
    if (rank >= num_symbols_) {
        return false;
    }
    table_.expansions[rank] = Expansion(static_cast<std::uint32_t>(pool_size_), 0, true, false);
    position_.skip_symbol();
    return true;
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
        if (token.size() > kMaxExpansionSize || token.size() > at.room()) {
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

// Expands rules one after another. All that changes is in registers.
struct RuleExpander {
    std::uint8_t* const pool;
    const Expansion* const expansions;
    const std::size_t pool_size;
    std::size_t level_start;  // symbols of rules begin before it
    std::size_t at;           // the end of what was written

    // Appends a symbol. Returns false if it may not be in the rule, or the pool is full.
    [[gnu::always_inline]] bool append(const Expansion& symbol) {
        if (symbol.offset() >= level_start || symbol.size() > pool_size - at) [[unlikely]] {
            return false;
        }
        const std::uint8_t* const source = pool + symbol.offset();
        copy_chunk(pool + at, source);
        for (std::size_t done = kChunkSize; done < symbol.size(); done += kChunkSize) [[unlikely]] {
            copy_chunk(pool + at + done, source + done);
        }
        at += symbol.size();
        return true;
    }
};

GOMPFS_TARGET_CLONES bool PoolBuilder::add_rules() {
    // Raw pointers: in a target clone, GCC does not inline functions of the library.
    const std::uint32_t* other = head_.other_ranks.data();
    const std::uint32_t* first = head_.first_ranks.data();
    const std::uint32_t* num_others = head_.rule_sizes.data();  // minus 1
    RuleExpander rule{table_.pool.data(), table_.expansions.data(), pool_size_, 0,
                      position_.size()};
    Position position = position_;
    for (const std::uint32_t level_size : head_.level_sizes) {
        rule.level_start = rule.at;
        for (std::uint32_t index = 0; index < level_size; ++index) {
            const std::size_t start = rule.at;
            const Expansion first_symbol = rule.expansions[*first++];
            if (!rule.append(first_symbol)) {
                return false;
            }
            Expansion before = first_symbol;
            const std::uint32_t* const end = other + *num_others++ + 1;
            do {
                const Expansion symbol = rule.expansions[*other++];
                rule.at -= symbol.takes_space_of(before);
                if (!rule.append(symbol)) {
                    return false;
                }
                before = symbol;
            } while (other != end);
            const std::size_t size = rule.at - start;
            if (size > kMaxExpansionSize ||
                !position.add(size, first_symbol.begins_with_separator(), before.ends_with_word(),
                              ranks_)) {
                return false;
            }
        }
    }
    position_ = position;
    return true;
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
