// Encodes a gompresso-bit payload: header, code lengths, sizes of the sub-blocks, sub-blocks.
//
// Sequence i and literal i go to sub-block i % 32, so that the 32 lanes of a warp decode a row of
// 32 sequences together. The encoder first turns sequences into symbols and counts them (collect),
// then builds the codes, which give the sizes of all sub-blocks (measure). Then one writer writes
// the sub-blocks one after the other: the items of a sub-block are 32 apart.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>

#include "codec/bit_codec.h"
#include "codec/huffman.h"
#include "codec/parse/bit_fields.h"
#include "codec/parse/byte_counts.h"
#include "codec/sub_blocks.h"
#include "common/bit_stream.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

// A codeword and the number of its bits.
struct Codeword {
    std::uint16_t bits = 0;
    std::uint16_t num_bits = 0;
};

// The symbol after the last: a sequence without a match has it in place of an offset. It has no
// codeword.
constexpr int kNoOffset = kNumSymbols;

// A sequence as symbols of the array of all symbols, with their extra bits.
struct PackedSequence {
    std::uint16_t token;
    std::uint16_t offset;  // kNoOffset if there is no match
    std::uint16_t token_extra;
    std::uint8_t num_token_extra;
    std::uint8_t num_offset_extra;
    std::uint32_t offset_extra;
};

constexpr int kMaxSequenceBits = kMaxTokenBits + 8 + 8 + kMaxOffsetBits + 20;
static_assert(kMaxSequenceBits <= 56, "a sequence is written at once");
constexpr std::size_t kLiteralsAtOnce = 56 / kMaxLiteralBits;

class BitEncoder {
  public:
    std::vector<std::uint8_t> encode(Bytes content, const std::vector<Sequence>& sequences,
                                     const ParserLimits& limits);

  private:
    // Literals are copied this many at once, which may be more than the sequence has.
    static constexpr std::size_t kCopiedLiterals = 16;

    void collect(Bytes content, const std::vector<Sequence>& sequences);
    void copy_literals(Bytes content, std::size_t position, std::size_t count);
    void build_codes(bool has_dictionary);
    void build_code(int first, int count, int max_bits);
    void measure();
    void write_sequences(BitWriter& out) const;
    void write_literals(BitWriter& out) const;
    int sequence_bits(const PackedSequence& sequence) const {
        return codewords_[sequence.token].num_bits + sequence.num_token_extra +
               codewords_[sequence.offset].num_bits + sequence.num_offset_extra;
    }

    std::vector<PackedSequence> sequences_;
    std::vector<std::uint8_t> literals_;  // with space after the last one
    std::size_t num_literals_ = 0;
    SymbolCounts counts_{};
    std::array<std::uint8_t, kNumSymbols> lengths_{};
    std::array<Codeword, kNumSymbols + 1> codewords_{};
    SubBlockSizes sequence_sizes_{};
    SubBlockSizes literal_sizes_{};
};

void BitEncoder::copy_literals(Bytes content, std::size_t position, std::size_t count) {
    std::uint8_t* const to = literals_.data() + num_literals_;
    if (count <= kCopiedLiterals && position + kCopiedLiterals <= content.size()) {
        std::memcpy(to, content.data() + position, kCopiedLiterals);
    } else {
        std::memcpy(to, content.data() + position, count);
    }
    num_literals_ += count;
}

void BitEncoder::collect(Bytes content, const std::vector<Sequence>& sequences) {
    sequences_.resize(sequences.size());
    literals_.resize(std::max(literals_.size(), content.size() + kCopiedLiterals));
    num_literals_ = 0;
    counts_.fill(0);
    std::uint32_t last_offset = 0;
    std::size_t position = 0;
    for (std::size_t index = 0; index < sequences.size(); ++index) {
        const Sequence& sequence = sequences[index];
        last_offset = index % kNumSubBlocks == 0 ? 0 : last_offset;
        const CodedSequence fields = code_sequence(sequence, sequence.match_offset == last_offset);
        const std::uint32_t token = kFirstToken + fields.token.symbol;
        const std::uint32_t offset = fields.has_match ? kFirstOffset + fields.offset.symbol
                                                      : static_cast<std::uint32_t>(kNoOffset);
        if (fields.has_match) {
            last_offset = last_offset_after(last_offset, sequence.match_offset);
            ++counts_[offset];
        }
        ++counts_[token];
        sequences_[index] = {static_cast<std::uint16_t>(token),
                             static_cast<std::uint16_t>(offset),
                             static_cast<std::uint16_t>(fields.token.extra),
                             static_cast<std::uint8_t>(fields.token.num_extra_bits),
                             static_cast<std::uint8_t>(fields.offset.num_extra_bits),
                             fields.offset.extra};
        copy_literals(content, position, sequence.literal_length);
        position += sequence.literal_length + sequence.match_length;
    }
    count_bytes(Bytes(literals_).first(num_literals_),
                std::span(counts_).subspan<kFirstLiteral, kNumLiteralSymbols>());
}

void BitEncoder::build_code(int first, int count, int max_bits) {
    std::array<std::uint16_t, kMaxAlphabet> bits;
    limited_code_lengths(std::span(counts_).subspan(first, count), max_bits,
                         lengths_.data() + first);
    canonical_codewords(std::span(lengths_).subspan(first, count), bits.data());
    for (int symbol = 0; symbol < count; ++symbol) {
        codewords_[first + symbol] = {bits[symbol], lengths_[first + symbol]};
    }
}

void BitEncoder::build_codes(bool has_dictionary) {
    build_code(kFirstLiteral, kNumLiteralSymbols, kMaxLiteralBits);
    build_code(kFirstToken, kNumTokenSymbols, kMaxTokenBits);
    build_code(kFirstOffset, num_offset_symbols(has_dictionary), kMaxOffsetBits);
}

// Computes the sizes of the sub-blocks.
void BitEncoder::measure() {
    sequence_sizes_.fill(0);
    for (std::size_t index = 0; index < sequences_.size(); ++index) {
        sequence_sizes_[index % kNumSubBlocks] +=
            static_cast<std::uint32_t>(sequence_bits(sequences_[index]));
    }
    literal_sizes_.fill(0);
    for (std::size_t index = 0; index < num_literals_; ++index) {
        literal_sizes_[index % kNumSubBlocks] += lengths_[kFirstLiteral + literals_[index]];
    }
}

void BitEncoder::write_sequences(BitWriter& out) const {
    for (std::size_t lane = 0; lane < kNumSubBlocks; ++lane) {
        for (std::size_t index = lane; index < sequences_.size(); index += kNumSubBlocks) {
            const PackedSequence& sequence = sequences_[index];
            const Codeword token = codewords_[sequence.token];
            const Codeword offset = codewords_[sequence.offset];
            const int num_token_bits = token.num_bits + sequence.num_token_extra;
            const std::uint64_t token_bits = token.bits | std::uint64_t{sequence.token_extra}
                                                              << token.num_bits;
            const std::uint64_t offset_bits = offset.bits | std::uint64_t{sequence.offset_extra}
                                                                << offset.num_bits;
            out.put(token_bits | offset_bits << num_token_bits, sequence_bits(sequence));
        }
    }
}

void BitEncoder::write_literals(BitWriter& out) const {
    constexpr std::size_t kStep = kLiteralsAtOnce * kNumSubBlocks;
    const Codeword* const codewords = codewords_.data() + kFirstLiteral;
    for (std::size_t lane = 0; lane < kNumSubBlocks; ++lane) {
        std::size_t index = lane;
        for (; index + kStep <= num_literals_; index += kStep) {
            std::uint64_t bits = 0;
            int num_bits = 0;
            for (std::size_t row = 0; row < kLiteralsAtOnce; ++row) {
                const Codeword codeword = codewords[literals_[index + row * kNumSubBlocks]];
                bits |= std::uint64_t{codeword.bits} << num_bits;
                num_bits += codeword.num_bits;
            }
            out.put(bits, num_bits);
        }
        for (; index < num_literals_; index += kNumSubBlocks) {
            const Codeword codeword = codewords[literals_[index]];
            out.put(codeword.bits, codeword.num_bits);
        }
    }
}

std::size_t total_bits(const SubBlockSizes& sizes, const SizeFrame& frame) {
    return std::accumulate(sizes.begin(), sizes.end(),
                           std::size_t{kNumSubBlocks} * static_cast<std::size_t>(frame.width));
}

std::vector<std::uint8_t> BitEncoder::encode(Bytes content, const std::vector<Sequence>& sequences,
                                             const ParserLimits& limits) {
    const bool has_dictionary = limits.dictionary != nullptr;
    collect(content, sequences);
    build_codes(has_dictionary);
    measure();
    const std::vector<std::uint8_t> code_lengths = write_code_lengths(
        std::span(lengths_).first(kFirstOffset + num_offset_symbols(has_dictionary)));
    const SizeFrame sequence_frame = size_frame(sequence_sizes_);
    const SizeFrame literal_frame = size_frame(literal_sizes_);
    const std::size_t stream_start = kBitHeaderSize + code_lengths.size();
    const std::size_t num_bits =
        total_bits(sequence_sizes_, sequence_frame) + total_bits(literal_sizes_, literal_frame);
    static_assert(kBitPadding >= BitWriter::kSlack);
    std::vector<std::uint8_t> payload(stream_start + (num_bits + 7) / 8 + kBitPadding);
    payload[0] = limits.dependency_elimination ? kFlagDependencyElimination : 0;
    payload[1] = static_cast<std::uint8_t>(limits.group_size_log2);
    payload[2] = static_cast<std::uint8_t>(sequence_frame.width);
    payload[3] = static_cast<std::uint8_t>(literal_frame.width);
    store(&payload[4], static_cast<std::uint32_t>(sequences.size()));
    store(&payload[8], static_cast<std::uint32_t>(num_literals_));
    store(&payload[12], sequence_frame.base);
    store(&payload[16], literal_frame.base);
    store(&payload[20], static_cast<std::uint32_t>(code_lengths.size()));
    std::copy(code_lengths.begin(), code_lengths.end(), payload.begin() + kBitHeaderSize);
    BitWriter out(payload.data() + stream_start);
    put_sizes(out, sequence_sizes_, sequence_frame);
    put_sizes(out, literal_sizes_, literal_frame);
    write_sequences(out);
    write_literals(out);
    return payload;
}

}  // namespace

ParserLimits bit_parser_limits(const EncodeOptions& options) {
    return {.min_match_length = kBitMinMatchLength,
            .max_literal_length = kBitMaxLiteralLength,
            .max_match_length = kBitMaxMatchLength,
            .max_match_offset = 1u << 20,
            .group_size_log2 = options.group_size_log2,
            .dependency_elimination = options.dependency_elimination,
            .strict_sources = options.strict_sources,
            .entropy_coded = true,
            .dictionary = options.dictionary};
}

std::vector<std::uint8_t> encode_bit(Bytes content, const std::vector<Sequence>& sequences,
                                     const ParserLimits& limits) {
    thread_local const auto encoder = std::make_unique<BitEncoder>();
    return encoder->encode(content, sequences, limits);
}

}  // namespace gompfs
