// Encodes a part of text; see part_encoder.h. The root is cut into blocks of the text's size; a
// symbol that reaches over the end of a block is in both blocks.
#include "parts/part_encoder.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "codec/block.h"
#include "codec/tadoc_codec.h"
#include "parts/head.h"
#include "parts/part_symbols.h"

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
    PartEncoder(const PartGrammar& part, const SharedTokens& shared, std::uint32_t block_size)
        : part_(part),
          block_size_(block_size),
          words_(shared.section()),
          rules_(limit_rules(part)),
          ranked_(rank_symbols(part, rules_, shared)) {}

    // See encode_part.
    std::optional<EncodedPart> encode();

  private:
    bool is_within_limits() const;
    void count_ranks(const std::vector<BlockSymbols>& blocks);
    bool add_block(const BlockSymbols& block);
    void finish(Bytes head_payload);
    std::uint32_t pool_size() const;

    const PartGrammar& part_;
    const std::uint32_t block_size_;
    const WordSection& words_;
    const PartRules rules_;
    const RankedPart ranked_;
    std::vector<std::uint32_t> root_;  // as ranks
    ClassEncoder code_;
    EncodedPart encoded_;
};

std::uint32_t PartEncoder::pool_size() const {
    return std::accumulate(
        rules_.expansions.begin(), rules_.expansions.end(), std::uint32_t{0},
        [](std::uint32_t size, const Expansion& symbol) { return size + symbol.size(); });
}

bool PartEncoder::is_within_limits() const {
    const auto is_short = [](const Expansion& symbol) {
        return symbol.size() <= kMaxExpansionSize;
    };
    return ranked_.head.classes.size() < kMaxPartSymbols && pool_size() <= kMaxPoolSize &&
           std::all_of(rules_.expansions.begin(), rules_.expansions.end(), is_short);
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
    const std::vector<std::uint8_t> payload = write_head(ranked_.head, ranked_.rules, code_);
    if (payload.size() > kMaxHeadPayload) {
        return std::nullopt;
    }
    for (const BlockSymbols& block : blocks) {
        if (!add_block(block)) {
            return std::nullopt;
        }
    }
    finish(payload);
    return std::move(encoded_);
}

// Decodes what was encoded, and gives the head its header.
void PartEncoder::finish(Bytes head_payload) {
    const auto symbols = read_symbols(head_payload, words_, pool_size());
    if (!symbols) {
        throw std::logic_error("the head of a part cannot be read back");
    }
    const std::uint64_t pool_xxh3 = XXH3_64bits(symbols->pool.data(), pool_size());
    encoded_.head = frame_block(Codec::head, head_payload, pool_size(), pool_xxh3);
    std::vector<std::uint8_t> content;
    for (const std::vector<std::uint8_t>& block : encoded_.blocks) {
        const std::optional<BlockHeader> header = parse_block_header(block);
        content.resize(header ? header->uncompressed_size : 0);
        if (!header || decode_block(*header, block, true, content, &*symbols) != BlockStatus::ok) {
            throw std::logic_error("a block of a part does not decode to its text");
        }
    }
}

}  // namespace

std::optional<EncodedPart> encode_part(const PartGrammar& part, const SharedTokens& shared,
                                       std::uint32_t block_size) {
    return PartEncoder(part, shared, block_size).encode();
}

}  // namespace gompfs
