// Expands the symbols of a head into a pool; see head.h. Rules are expanded in the order of their
// numbers, so every symbol of a rule has its bytes in the pool already.
#include <cstring>

#include "codec/copy.h"
#include "parts/head.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

class PoolBuilder {
  public:
    PoolBuilder(const Head& head, const WordSection& words, std::size_t pool_size)
        : head_(head), words_(words), pool_size_(pool_size) {}

    // Returns whether the pool has exactly its size and all symbols exist.
    bool build();
    SymbolTable take();

  private:
    bool add_tokens(const TokenList& local, const TokenList& global,
                    const std::vector<std::uint32_t>& numbers, bool are_words);
    bool add_token(std::string_view token, bool is_word);
    bool add_rule(std::uint32_t rule);

    const Head& head_;
    const WordSection& words_;
    const std::size_t pool_size_;
    std::size_t size_ = 0;
    std::vector<std::uint8_t> pool_;
    std::vector<Expansion> expansions_;  // by symbol
};

bool PoolBuilder::build() {
    if (pool_size_ > kMaxPoolSize) {
        return false;
    }
    pool_.resize(pool_size_ + SymbolTable::kPoolMargin);
    expansions_.reserve(head_.num_symbols());
    if (head_.has_splitter) {
        expansions_.emplace_back(0, 0, true, false);
    }
    if (!add_tokens(head_.local_words, words_.words(), head_.global_words, true) ||
        !add_tokens(head_.local_separators, words_.separators(), head_.global_separators, false)) {
        return false;
    }
    for (std::uint32_t rule = 0; rule < head_.num_rules(); ++rule) {
        if (!add_rule(rule)) {
            return false;
        }
    }
    return size_ == pool_size_;
}

bool PoolBuilder::add_tokens(const TokenList& local, const TokenList& global,
                             const std::vector<std::uint32_t>& numbers, bool are_words) {
    for (std::uint32_t index = 0; index < local.size(); ++index) {
        if (!add_token(local[index], are_words)) {
            return false;
        }
    }
    for (const std::uint32_t number : numbers) {
        if (number >= global.size() || !add_token(global[number], are_words)) {
            return false;
        }
    }
    return true;
}

bool PoolBuilder::add_token(std::string_view token, bool is_word) {
    const std::size_t size = token.size() + (is_word ? 1 : 0);
    if (size > pool_size_ - size_) {
        return false;
    }
    std::memcpy(&pool_[size_], token.data(), token.size());
    if (is_word) {
        pool_[size_ + token.size()] = ' ';
    }
    expansions_.emplace_back(static_cast<std::uint32_t>(size_), static_cast<std::uint32_t>(size),
                             !is_word, is_word);
    size_ += size;
    return true;
}

bool PoolBuilder::add_rule(std::uint32_t rule) {
    constexpr std::size_t kFastSize = 32;
    static_assert(kFastSize <= SymbolTable::kPoolMargin);
    const std::uint32_t* const begin = &head_.rule_symbols[head_.rule_starts[rule]];
    const std::uint32_t* const end = begin + (head_.rule_starts[rule + 1] - head_.rule_starts[rule]);
    std::uint8_t* const pool = pool_.data();
    const std::size_t limit = std::min(pool_size_, size_ + kMaxExpansionSize);
    std::size_t at = size_;
    Expansion before = expansions_[*begin];
    const bool begins_with_separator = before.begins_with_separator();
    for (const std::uint32_t* next = begin; next != end; ++next) {
        const Expansion symbol = expansions_[*next];
        at -= next == begin ? 0 : symbol.takes_space_of(before);
        if (symbol.size() > limit - at) {
            return false;
        }
        if (symbol.size() <= kFastSize) [[likely]] {
            copy_fixed<16>(pool + at, pool + symbol.offset());
            copy_fixed<16>(pool + at + 16, pool + symbol.offset() + 16);
        } else {
            std::memcpy(pool + at, pool + symbol.offset(), symbol.size());
        }
        at += symbol.size();
        before = symbol;
    }
    expansions_.emplace_back(static_cast<std::uint32_t>(size_),
                             static_cast<std::uint32_t>(at - size_), begins_with_separator,
                             before.ends_with_word());
    size_ = at;
    return true;
}

SymbolTable PoolBuilder::take() {
    SymbolTable table;
    table.expansions.reserve(expansions_.size());
    for (const std::uint32_t symbol : head_.symbols) {
        table.expansions.push_back(expansions_[symbol]);
    }
    table.pool = std::move(pool_);
    table.code = head_.code;
    return table;
}

}  // namespace

std::optional<SymbolTable> make_symbol_table(const Head& head, const WordSection& words,
                                             std::size_t pool_size) {
    PoolBuilder builder(head, words, pool_size);
    if (!builder.build()) {
        return std::nullopt;
    }
    return builder.take();
}

}  // namespace gompfs
