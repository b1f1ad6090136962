// Computes how large a payload of gompresso-bit would be with other limits of codewords, and with
// other sub-blocks, than the format has. Built as a shared library by sweeps.py, with
// native/codec/huffman.cpp: codes are those of the encoder.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "codec/huffman.h"
#include "codec/parse/bit_fields.h"

namespace {

using gompfs::CodedSequence;
using gompfs::Sequence;

// The sequences and literals of a block, in symbols.
struct Symbols {
    gompfs::SymbolCounts counts{};
    std::vector<CodedSequence> sequences;
};

// An offset repeats only one of the same row of sequences, as a row is decoded at once. With rows
// of one sequence, which are decoded one after another, it may repeat any.
Symbols code_symbols(std::span<const Sequence> sequences, std::span<const std::uint8_t> literals,
                     std::size_t row) {
    Symbols found;
    std::uint32_t last_offset = 0;
    for (std::size_t index = 0; index < sequences.size(); ++index) {
        last_offset = row != 1 && index % row == 0 ? 0 : last_offset;
        const std::uint32_t offset = sequences[index].match_offset;
        const CodedSequence fields = gompfs::code_sequence(sequences[index], offset == last_offset);
        if (fields.has_match) {
            last_offset = offset;
            ++found.counts[gompfs::kFirstOffset + fields.offset.symbol];
        }
        ++found.counts[gompfs::kFirstToken + fields.token.symbol];
        found.sequences.push_back(fields);
    }
    for (const std::uint8_t literal : literals) {
        ++found.counts[gompfs::kFirstLiteral + literal];
    }
    return found;
}

using CodeLengths = std::array<std::uint8_t, gompfs::kNumSymbols>;

// The lengths of the three codes. As in the format, offsets have one bit less.
CodeLengths build_codes(const Symbols& symbols, int max_bits) {
    CodeLengths lengths{};
    const auto build = [&](int first, int count, int limit) {
        gompfs::limited_code_lengths(std::span(symbols.counts).subspan(first, count), limit,
                                     lengths.data() + first);
    };
    build(gompfs::kFirstLiteral, gompfs::kNumLiteralSymbols, max_bits);
    build(gompfs::kFirstToken, gompfs::kNumTokenSymbols, max_bits);
    build(gompfs::kFirstOffset, gompfs::kNumOffsetSymbols, max_bits - 1);
    return lengths;
}

std::uint32_t sequence_bits(const CodedSequence& sequence, const CodeLengths& lengths) {
    std::uint32_t bits = lengths[gompfs::kFirstToken + sequence.token.symbol] +
                         static_cast<std::uint32_t>(sequence.token.num_extra_bits);
    if (sequence.has_match) {
        bits += lengths[gompfs::kFirstOffset + sequence.offset.symbol] +
                static_cast<std::uint32_t>(sequence.offset.num_extra_bits);
    }
    return bits;
}

// The bits of sub-blocks, and of their sizes: each is the smallest size and a number of fixed
// width.
std::size_t stream_bits(const std::vector<std::uint32_t>& sizes) {
    if (sizes.empty()) {
        return 0;
    }
    const auto [smallest, largest] = std::minmax_element(sizes.begin(), sizes.end());
    const std::size_t width = std::bit_width(*largest - *smallest);
    return std::accumulate(sizes.begin(), sizes.end(), sizes.size() * width);
}

std::size_t code_lengths_size(const CodeLengths& lengths) {
    constexpr std::size_t kCount = gompfs::kFirstOffset + gompfs::kNumOffsetSymbols;
    return gompfs::write_code_lengths(std::span(lengths).first(kCount)).size();
}

}  // namespace

// Returns the size of a payload whose codewords have at most `max_bits` bits, and whose item i is
// in sub-block i % num_sub_blocks. If the format cannot write the code lengths for `max_bits`, the
// code lengths for the format's own limit are counted instead.
extern "C" std::size_t size_with_interleaved_sub_blocks(const Sequence* sequences,
                                                        std::size_t num_sequences,
                                                        const std::uint8_t* literals,
                                                        std::size_t num_literals, int max_bits,
                                                        std::size_t num_sub_blocks) {
    const std::span all_literals(literals, num_literals);
    const Symbols symbols = code_symbols({sequences, num_sequences}, all_literals, num_sub_blocks);
    const CodeLengths lengths = build_codes(symbols, max_bits);
    std::vector<std::uint32_t> sequence_sizes(num_sub_blocks), literal_sizes(num_sub_blocks);
    for (std::size_t index = 0; index < num_sequences; ++index) {
        sequence_sizes[index % num_sub_blocks] += sequence_bits(symbols.sequences[index], lengths);
    }
    for (std::size_t index = 0; index < num_literals; ++index) {
        literal_sizes[index % num_sub_blocks] += lengths[gompfs::kFirstLiteral + literals[index]];
    }
    const std::size_t bits = stream_bits(sequence_sizes) + stream_bits(literal_sizes);
    const int written = std::min(max_bits, gompfs::kMaxLiteralBits);
    return gompfs::kBitHeaderSize + code_lengths_size(build_codes(symbols, written)) +
           (bits + 7) / 8 + gompfs::kBitPadding;
}

// Returns the size of a payload whose sub-blocks have `run` consecutive sequences with their
// literals, as in the Gompresso paper.
extern "C" std::size_t size_with_consecutive_sub_blocks(const Sequence* sequences,
                                                        std::size_t num_sequences,
                                                        const std::uint8_t* literals,
                                                        std::size_t num_literals, int max_bits,
                                                        std::size_t run) {
    const std::span all_literals(literals, num_literals);
    const Symbols symbols = code_symbols({sequences, num_sequences}, all_literals, run);
    const CodeLengths lengths = build_codes(symbols, max_bits);
    std::vector<std::uint32_t> sizes((num_sequences + run - 1) / run);
    std::size_t literal = 0;
    for (std::size_t index = 0; index < num_sequences; ++index) {
        sizes[index / run] += sequence_bits(symbols.sequences[index], lengths);
        for (std::uint32_t done = 0; done < sequences[index].literal_length; ++done, ++literal) {
            sizes[index / run] += lengths[gompfs::kFirstLiteral + literals[literal]];
        }
    }
    return gompfs::kBitHeaderSize + code_lengths_size(lengths) + (stream_bits(sizes) + 7) / 8 +
           gompfs::kBitPadding;
}
