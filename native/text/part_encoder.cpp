// Encodes a part of text; see part_encoder.h. The root is cut into blocks of the text's size; a
// symbol that reaches over the end of a block is in both blocks.
#include "text/part_encoder.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "codec/block.h"
#include "codec/tadoc_codec.h"
#include "text/head.h"
#include "text/part_symbols.h"

namespace gompfs {
namespace {

// A range of the root's symbols, and how much of the first one belongs to the block before.
struct BlockSymbols {
    std::size_t begin, end;
    std::uint16_t skip;
};

std::vector<BlockSymbols> cut_root(const PartRules& rules, std::uint32_t text_size,
                                   std::uint32_t block_size) {
    const std::span<const Symbol> root = rules.symbols_of(0);
    std::vector<std::uint64_t> starts;  // in the text, and the end of the last symbol
    starts.reserve(root.size() + 1);
    std::uint64_t position = 0;
    Expansion before;
    for (const Symbol symbol : root) {
        const Expansion& next = rules.expansion(symbol);
        position -= next.takes_space_of(before);
        starts.push_back(position);
        position += next.size();
        before = next;
    }
    if (position != text_size) {
        throw std::logic_error("the symbols of a part are not its text");
    }
    starts.push_back(position);
    std::vector<BlockSymbols> blocks;
    std::size_t begin = 0;
    for (std::uint64_t start = 0; start < text_size; start += block_size) {
        const std::uint64_t end = std::min<std::uint64_t>(start + block_size, text_size);
        while (starts[begin + 1] <= start) {
            ++begin;
        }
        // Splitters after the last byte belong to the block as well.
        std::size_t last = begin;
        while (last < root.size() && starts[last + 1] <= end) {
            ++last;
        }
        if (starts[last] < end) {
            ++last;
        }
        blocks.push_back({begin, last, static_cast<std::uint16_t>(start - starts[begin])});
        begin = last - 1;
    }
    return blocks;
}

class PartEncoder {
  public:
    PartEncoder(const PartGrammar& part, const SharedTokens& shared, std::uint32_t block_size,
                int level)
        : part_(part),
          block_size_(block_size),
          level_(level),
          words_(shared.section()),
          numbers_(shared.find(part.tokens)),
          rules_(limit_rules(part)),
          ranked_(rank_symbols(part, rules_, numbers_)) {}

    // See encode_part.
    std::optional<EncodedPart> encode();

  private:
    bool is_within_limits() const;
    void count_ranks(const std::vector<BlockSymbols>& blocks);
    bool add_block(const BlockSymbols& block);
    void add_head(Bytes payload);
    bool is_text(const std::optional<SymbolTable>& symbols) const;
    std::uint64_t pool_size() const;

    const PartGrammar& part_;
    const std::uint32_t block_size_;
    const int level_;
    const WordSection& words_;
    const std::vector<std::uint32_t> numbers_;  // of the tokens in the section
    const PartRules rules_;
    const RankedPart ranked_;
    std::vector<std::uint32_t> root_;  // as ranks
    ClassEncoder code_;
    EncodedPart encoded_;
};

std::uint64_t PartEncoder::pool_size() const {
    return std::accumulate(
        rules_.expansions.begin(), rules_.expansions.end(), std::uint64_t{0},
        [](std::uint64_t size, const Expansion& symbol) { return size + symbol.size(); });
}

bool PartEncoder::is_within_limits() const {
    const auto is_short = [](const Expansion& symbol) {
        return symbol.size() <= kMaxExpansionSize;
    };
    return ranked_.head.classes.size() < kMaxPartSymbols && pool_size() <= kMaxPoolSize &&
           std::all_of(rules_.expansions.begin(), rules_.expansions.end(), is_short) &&
           std::find(numbers_.begin(), numbers_.end(), SharedTokens::kNoRoom) == numbers_.end();
}

void PartEncoder::count_ranks(const std::vector<BlockSymbols>& blocks) {
    for (const BlockSymbols& block : blocks) {
        for (std::size_t index = block.begin; index < block.end; ++index) {
            code_.count_number(root_[index]);
        }
    }
    const HeadRules& rules = ranked_.rules;
    for (std::size_t rule = 0; rule + 1 < rules.starts.size(); ++rule) {
        for (std::uint32_t index = rules.starts[rule] + 1; index < rules.starts[rule + 1];
             ++index) {
            code_.count_number(rules.ranks[index]);
        }
    }
}

bool PartEncoder::add_block(const BlockSymbols& block) {
    const std::size_t number = encoded_.blocks.size();
    const std::uint32_t size = std::min<std::uint32_t>(
        block_size_, part_.text_size - static_cast<std::uint32_t>(number) * block_size_);
    const std::vector<std::uint8_t> payload = encode_tadoc(
        std::span(root_).subspan(block.begin, block.end - block.begin), block.skip, code_);
    encoded_.blocks.push_back(
        frame_block(Codec::gompresso_tadoc, payload, size, part_.block_xxh3[number]));
    return payload.size() <= std::min<std::size_t>(size + kTadocMaxOverhead, kMaxBlockSize);
}

std::optional<EncodedPart> PartEncoder::encode() {
    if (!is_within_limits()) {
        return std::nullopt;
    }
    const std::vector<BlockSymbols> blocks = cut_root(rules_, part_.text_size, block_size_);
    const std::span<const Symbol> root = rules_.symbols_of(0);
    root_.reserve(root.size());
    for (const Symbol symbol : root) {
        root_.push_back(ranked_.rank(symbol));
    }
    count_ranks(blocks);
    // Builds the code, which the blocks need.
    const std::vector<std::uint8_t> payload =
        write_head(ranked_.head, ranked_.rules, level_, code_);
    if (payload.size() > kMaxHeadPayload) {
        return std::nullopt;
    }
    for (const BlockSymbols& block : blocks) {
        if (!add_block(block)) {
            return std::nullopt;
        }
    }
    add_head(payload);
    return std::move(encoded_);
}

// Gives the head its header, and reads it and the blocks as a reader does.
void PartEncoder::add_head(Bytes payload) {
    const auto pool_size = static_cast<std::uint32_t>(this->pool_size());
    const std::optional<SymbolTable> symbols = read_symbols(payload, words_, pool_size);
    const std::uint64_t pool_xxh3 = symbols ? XXH3_64bits(symbols->pool.data(), pool_size) : 0;
    encoded_.head = frame_block(Codec::head, payload, pool_size, pool_xxh3);
    encoded_.is_readable = is_text(symbols);
}

// Whether the blocks decode to the text of the part, with the symbols of its head if that could be
// read.
bool PartEncoder::is_text(const std::optional<SymbolTable>& symbols) const {
    std::vector<std::uint8_t> content;
    return symbols && std::all_of(encoded_.blocks.begin(), encoded_.blocks.end(), [&](Bytes block) {
               const std::optional<BlockHeader> header = parse_block_header(block);
               content.resize(header ? header->uncompressed_size : 0);
               return header &&
                      decode_block(*header, block, true, content, &*symbols) == BlockStatus::ok;
           });
}

}  // namespace

std::optional<EncodedPart> encode_part(const PartGrammar& part, const SharedTokens& shared,
                                       std::uint32_t block_size, int level) {
    return PartEncoder(part, shared, block_size, level).encode();
}

}  // namespace gompfs
