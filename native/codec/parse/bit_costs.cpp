// Estimates symbol costs; see bit_costs.h. The cost of a symbol is its information content,
// log2(total / count), which Huffman codewords approximate.
#include "codec/parse/bit_costs.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "codec/parse/integer_log2.h"

namespace gompfs {
namespace {

void estimate_code(std::span<const std::uint32_t> counts, std::int32_t* costs) {
    const std::uint32_t total = std::accumulate(counts.begin(), counts.end(), 1u);
    const std::int32_t twice_total = log2_fixed(total) + kLog2One;
    for (const std::uint32_t count : counts) {
        *costs++ = symbol_cost(twice_total, log2_fixed(std::max(2 * count, 1u)));
    }
}

}  // namespace

SymbolCounts count_symbols(Bytes content, const std::vector<Sequence>& sequences) {
    SymbolCounts counts{};
    std::uint32_t last_offset = 0;
    std::size_t position = 0;
    for (std::size_t index = 0; index < sequences.size(); ++index) {
        const Sequence& sequence = sequences[index];
        last_offset = index % kNumSubBlocks == 0 ? 0 : last_offset;
        const CodedSequence fields = code_sequence(sequence, sequence.match_offset == last_offset);
        last_offset =
            fields.has_match ? last_offset_after(last_offset, sequence.match_offset) : last_offset;
        ++counts[kFirstToken + fields.token.symbol];
        counts[kFirstOffset + fields.offset.symbol] += fields.has_match;
        for (std::uint32_t left = sequence.literal_length; left > 0; --left) {
            ++counts[kFirstLiteral + content[position++]];
        }
        position += sequence.match_length;
    }
    return counts;
}

BitCosts estimate_costs(const SymbolCounts& counts) {
    const std::span all(counts);
    BitCosts costs;
    estimate_code(all.subspan(kFirstLiteral, kNumLiteralSymbols), costs.literal.data());
    estimate_code(all.subspan(kFirstToken, kNumTokenSymbols), costs.token.data());
    estimate_code(all.subspan(kFirstOffset, kNumAllOffsetSymbols), costs.offset.data());
    for (int symbol = 0; symbol < kNumTokenSymbols; ++symbol) {
        costs.token[symbol] += kBitCost * token_extra_bits(symbol);
    }
    for (int symbol = 0; symbol < kNumOffsetSymbols; ++symbol) {
        costs.offset[symbol] += kBitCost * offset_extra_bits(symbol);
    }
    for (unsigned symbol = kFirstDictionarySymbol; symbol < kNumAllOffsetSymbols; ++symbol) {
        costs.offset[symbol] += kBitCost * static_cast<int>(dictionary_extra_bits(symbol));
    }
    return costs;
}

}  // namespace gompfs
