// Encodes a gompresso-bit payload: header, code lengths, sizes of the sub-blocks, sub-blocks.
//
// Sequence i and literal i go to sub-block i % 32, so that the 32 lanes of a warp decode a row of
// 32 sequences together. The encoder first turns sequences into symbols and counts them (collect),
// then builds the codes, then writes 64 separate bit streams (write_sub_blocks), and at last
// concatenates them bit by bit after their sizes.
#include <algorithm>
#include <array>
#include <utility>

#include "codec/bit_codec.h"
#include "codec/bit_fields.h"
#include "codec/bit_stream.h"
#include "codec/huffman.h"
#include "codec/sub_blocks.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

// The three codes of a payload; their symbols share one array.
struct Codes {
    SymbolCounts counts{};
    std::array<std::uint8_t, kNumSymbols> lengths{};
    std::array<std::uint16_t, kNumSymbols> codewords{};

    void build() {
        build_one(kFirstLiteral, kNumLiteralSymbols, kMaxLiteralBits);
        build_one(kFirstToken, kNumTokenSymbols, kMaxTokenBits);
        build_one(kFirstOffset, kNumOffsetSymbols, kMaxOffsetBits);
    }

    // The codeword and the extra bits of a field as one number, and the number of bits.
    std::pair<std::uint64_t, int> bits_of(int code, const Field& field) const {
        const int num_bits = lengths[code + field.symbol];
        return {codewords[code + field.symbol] | std::uint64_t{field.extra} << num_bits,
                num_bits + field.num_extra_bits};
    }

  private:
    void build_one(int first, int count, int max_bits) {
        limited_code_lengths(std::span(counts).subspan(first, count), max_bits,
                             lengths.data() + first);
        canonical_codewords(std::span(lengths).subspan(first, count), codewords.data() + first);
    }
};

struct Coder {
    std::vector<CodedSequence> coded;
    std::vector<std::uint8_t> literals;
    std::vector<std::uint8_t> sub_block_bytes;
    SubBlocks sequence_bits;
    SubBlocks literal_bits;
    Codes codes;

    void collect(Bytes content, const std::vector<Sequence>& sequences);
    void write_sub_blocks();
};

void Coder::collect(Bytes content, const std::vector<Sequence>& sequences) {
    std::uint32_t last_offset = 0;
    std::size_t position = 0;
    coded.reserve(sequences.size());
    literals.reserve(content.size());
    for (std::size_t index = 0; index < sequences.size(); ++index) {
        const Sequence& sequence = sequences[index];
        last_offset = index % kNumSubBlocks == 0 ? 0 : last_offset;
        const CodedSequence fields = code_sequence(sequence, sequence.match_offset == last_offset);
        last_offset = fields.has_match ? sequence.match_offset : last_offset;
        ++codes.counts[kFirstToken + fields.token.symbol];
        codes.counts[kFirstOffset + fields.offset.symbol] += fields.has_match;
        coded.push_back(fields);
        literals.insert(literals.end(), content.begin() + position,
                        content.begin() + position + sequence.literal_length);
        position += sequence.literal_length + sequence.match_length;
    }
    for (const std::uint8_t literal : literals) {
        ++codes.counts[kFirstLiteral + literal];
    }
}

constexpr int kMaxSequenceBits = kMaxTokenBits + 8 + 8 + kMaxOffsetBits + 20;
static_assert(kMaxSequenceBits <= 56, "a sequence is written at once");

void Coder::write_sub_blocks() {
    const std::size_t sequence_capacity = sub_block_capacity(coded.size(), kMaxSequenceBits);
    const std::size_t literal_capacity = sub_block_capacity(literals.size(), kMaxLiteralBits);
    sub_block_bytes.resize(kNumSubBlocks * (sequence_capacity + literal_capacity));
    for (int lane = 0; lane < kNumSubBlocks; ++lane) {
        sequence_bits[lane] = BitWriter(sub_block_bytes.data() + lane * sequence_capacity);
        literal_bits[lane] = BitWriter(sub_block_bytes.data() + kNumSubBlocks * sequence_capacity +
                                       lane * literal_capacity);
    }
    for (std::size_t index = 0; index < coded.size(); ++index) {
        const auto [token, num_token_bits] = codes.bits_of(kFirstToken, coded[index].token);
        const auto [offset, num_offset_bits] =
            coded[index].has_match ? codes.bits_of(kFirstOffset, coded[index].offset)
                                   : std::pair<std::uint64_t, int>{0, 0};
        sequence_bits[index % kNumSubBlocks].put(token | offset << num_token_bits,
                                                 num_token_bits + num_offset_bits);
    }
    for (std::size_t index = 0; index < literals.size(); ++index) {
        const std::size_t symbol = kFirstLiteral + literals[index];
        literal_bits[index % kNumSubBlocks].put(codes.codewords[symbol], codes.lengths[symbol]);
    }
}

}  // namespace

ParserLimits bit_parser_limits(const EncodeOptions& options) {
    return {
        kBitMinMatchLength,      kBitMaxLiteralLength,           kBitMaxMatchLength,     1u << 20,
        options.group_size_log2, options.dependency_elimination, options.strict_sources, true};
}

std::vector<std::uint8_t> encode_bit(Bytes content, const std::vector<Sequence>& sequences,
                                     const ParserLimits& limits) {
    Coder coder;
    coder.collect(content, sequences);
    coder.codes.build();
    coder.write_sub_blocks();
    const std::vector<std::uint8_t> code_lengths = write_code_lengths(coder.codes.lengths);
    const SizeFrame sequence_frame = size_frame(coder.sequence_bits);
    const SizeFrame literal_frame = size_frame(coder.literal_bits);

    const std::size_t stream_start = kBitHeaderSize + code_lengths.size();
    std::vector<std::uint8_t> payload(stream_start + 2 * kMaxSizesBytes +
                                      coder.sub_block_bytes.size() + kBitPadding);
    payload[0] = limits.dependency_elimination ? kFlagDependencyElimination : 0;
    payload[1] = static_cast<std::uint8_t>(limits.group_size_log2);
    payload[2] = static_cast<std::uint8_t>(sequence_frame.width);
    payload[3] = static_cast<std::uint8_t>(literal_frame.width);
    store(&payload[4], static_cast<std::uint32_t>(sequences.size()));
    store(&payload[8], static_cast<std::uint32_t>(coder.literals.size()));
    store(&payload[12], sequence_frame.base);
    store(&payload[16], literal_frame.base);
    store(&payload[20], static_cast<std::uint32_t>(code_lengths.size()));
    std::copy(code_lengths.begin(), code_lengths.end(), payload.begin() + kBitHeaderSize);
    BitWriter bits(payload.data() + stream_start);
    put_sizes(bits, coder.sequence_bits, sequence_frame);
    put_sizes(bits, coder.literal_bits, literal_frame);
    for (const SubBlocks* sub_blocks : {&coder.sequence_bits, &coder.literal_bits}) {
        for (const BitWriter& sub_block : *sub_blocks) {
            bits.put_all(sub_block);
        }
    }
    payload.resize(stream_start + bits.num_bytes());
    payload.resize(payload.size() + kBitPadding);
    return payload;
}

}  // namespace gompfs
