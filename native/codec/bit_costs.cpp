// Estimates symbol costs; see bit_costs.h. The cost of a symbol is its information content,
// log2(total / count), which Huffman codewords approximate.
#include "codec/bit_costs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace gompfs {
namespace {

// A symbol that did not occur has a finite cost, as if it had occurred sometimes, so that the
// parser may use it.
constexpr double kUnseen = 0.5;
constexpr double kMinBits = 0.5;
constexpr double kMaxBits = 13;

// The information content of each symbol of a code.
void estimate_code(std::span<const std::uint32_t> counts, std::int32_t* costs) {
    const double total = std::accumulate(counts.begin(), counts.end(), 1.0);
    for (const std::uint32_t count : counts) {
        const double bits = std::log2(total / std::max<double>(count, kUnseen));
        *costs++ = static_cast<std::int32_t>(kBitCost * std::clamp(bits, kMinBits, kMaxBits));
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
        last_offset = fields.has_match ? sequence.match_offset : last_offset;
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
    estimate_code(all.subspan(kFirstOffset, kNumOffsetSymbols), costs.offset.data());
    for (int symbol = 0; symbol < kNumTokenSymbols; ++symbol) {
        costs.token[symbol] += kBitCost * (kLiteralClassExtraBits[symbol / kNumMatchClasses] +
                                           kMatchClassExtraBits[symbol % kNumMatchClasses]);
    }
    for (int symbol = kOffsetSymbolRepeat + 1; symbol < kNumOffsetSymbols; ++symbol) {
        costs.offset[symbol] += kBitCost * ((symbol - 1) / 2);
    }
    return costs;
}

}  // namespace gompfs
