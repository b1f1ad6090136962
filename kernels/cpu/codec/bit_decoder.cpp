// Decodes the gompresso-bit payload on one thread.
//
// A warp gives each of its lanes one sub-block; here one thread visits the 32 sub-blocks in turn, a
// sequence (or four literals) of each at a time. Neighbouring visits do not depend on each other, so the
// processor overlaps them, and the results come out in the order of the block.
#include <algorithm>
#include <array>
#include <vector>

#include "codec/bit_codec.h"
#include "codec/bit_stream.h"
#include "codec/huffman.h"
#include "codec/little_endian.h"
#include "format_constants.h"

namespace gompfs {
namespace {

constexpr std::size_t kMargin = 64;  // room behind literals and output that the fast copies need

// token entry: codeword bits | literal extra bits | match extra bits | literal base | match base
constexpr int kTokenLiteralBitsShift = 4;
constexpr int kTokenMatchBitsShift = 8;
constexpr int kTokenLiteralBaseShift = 12;
constexpr int kTokenMatchBaseShift = 16;
// offset entry: codeword bits | extra bits | base, which is 0 for a repeated offset
constexpr int kOffsetExtraBitsShift = 4;
constexpr int kOffsetBaseShift = 9;

using Positions = std::array<std::uint32_t, kNumSubBlocks>;  // in bits from the start of the stream

struct Decoder {
    // Tables and scratch keep their memory from block to block.
    std::array<std::uint16_t, 1 << kMaxLiteralBits> literal_table;
    std::array<std::uint32_t, 1 << kMaxTokenBits> token_table;
    std::array<std::uint32_t, 1 << kMaxOffsetBits> offset_table;
    std::vector<std::uint8_t> literals;
    Positions sequence_starts, sequence_ends, literal_starts, literal_ends;

    int group_size_log2;
    std::uint32_t num_sequences;
    std::uint32_t num_literals;
    const std::uint8_t* stream;

    bool read_header(Bytes payload, std::size_t content_size);
    bool read_codes(Bytes code_lengths);
    bool read_sizes(Bytes payload, std::size_t at, const std::array<std::uint32_t, 2>& bases,
                    const std::array<int, 2>& widths);
    bool decode_literals();
    bool decode_sequences(MutableBytes content);
};

struct SequenceRow {
    std::array<std::uint32_t, kNumSubBlocks> literal_length;
    std::array<std::uint32_t, kNumSubBlocks> match_length;
    std::array<std::uint32_t, kNumSubBlocks> match_offset;  // 0: the offset before
};

bool Decoder::read_header(Bytes payload, std::size_t content_size) {
    if (payload.size() < kBitHeaderSize + kBitPadding) {
        return false;
    }
    const std::uint8_t* header = payload.data();
    group_size_log2 = header[1];
    const std::array<int, 2> widths{header[2], header[3]};
    num_sequences = load<std::uint32_t>(header + 4);
    num_literals = load<std::uint32_t>(header + 8);
    const std::array<std::uint32_t, 2> bases{load<std::uint32_t>(header + 12), load<std::uint32_t>(header + 16)};
    const std::uint32_t code_lengths_size = load<std::uint32_t>(header + 20);
    if (header[0] > kFlagDependencyElimination || group_size_log2 < kMinGroupSizeLog2 ||
        group_size_log2 > kMaxGroupSizeLog2 || widths[0] > 24 || widths[1] > 24 || num_literals > content_size ||
        num_sequences > content_size + (1u << group_size_log2) ||
        code_lengths_size > payload.size() - kBitHeaderSize - kBitPadding) {
        return false;
    }
    return read_codes(payload.subspan(kBitHeaderSize, code_lengths_size)) &&
           read_sizes(payload, kBitHeaderSize + code_lengths_size, bases, widths);
}

bool Decoder::read_codes(Bytes code_lengths) {
    std::array<std::uint8_t, kNumLiteralSymbols + kNumTokenSymbols + kNumOffsetSymbols> lengths;
    const std::span<const std::uint8_t> literal(lengths.data(), kNumLiteralSymbols);
    const std::span<const std::uint8_t> token(literal.end(), kNumTokenSymbols);
    const std::span<const std::uint8_t> offset(token.end(), kNumOffsetSymbols);
    if (read_code_lengths(code_lengths, lengths) != code_lengths.size() || !is_decodable(literal, kMaxLiteralBits) ||
        !is_decodable(token, kMaxTokenBits) || !is_decodable(offset, kMaxOffsetBits)) {
        return false;
    }
    // An empty code decodes to nothing: its table stays zero, and what uses it fails its checks.
    literal_table.fill(0);
    token_table.fill(0);
    offset_table.fill(0);
    fill_decode_table(literal, kMaxLiteralBits, [&](std::size_t index, std::size_t symbol) {
        literal_table[index] = static_cast<std::uint16_t>(symbol | literal[symbol] << 8);
    });
    fill_decode_table(token, kMaxTokenBits, [&](std::size_t index, std::size_t symbol) {
        const std::size_t literal_class = symbol >> 5;
        const std::size_t match_class = symbol & 31;
        token_table[index] = token[symbol] | kLiteralClassExtraBits[literal_class] << kTokenLiteralBitsShift |
                             kMatchClassExtraBits[match_class] << kTokenMatchBitsShift |
                             kLiteralClassBase[literal_class] << kTokenLiteralBaseShift |
                             kMatchClassBase[match_class] << kTokenMatchBaseShift;
    });
    fill_decode_table(offset, kMaxOffsetBits, [&](std::size_t index, std::size_t symbol) {
        const std::uint32_t octave = symbol == 0 ? 1 : static_cast<std::uint32_t>(symbol - 1) / 2 + 1;
        const std::uint32_t half = static_cast<std::uint32_t>(symbol - 1) & 1;
        const std::uint32_t base = symbol == 0 ? 0 : (1u << octave) + (half << (octave - 1)) - 1;
        offset_table[index] = offset[symbol] | (octave - 1) << kOffsetExtraBitsShift | base << kOffsetBaseShift;
    });
    return true;
}

// Turns stored sizes into the start and end of every sub-block; the last must end where the stream does.
bool Decoder::read_sizes(Bytes payload, std::size_t at, const std::array<std::uint32_t, 2>& bases,
                         const std::array<int, 2>& widths) {
    const std::size_t size = payload.size() - kBitPadding - at;
    stream = payload.data() + at;
    BitReader bits(stream, size);
    std::uint64_t position = std::uint64_t{kNumSubBlocks} * (widths[0] + widths[1]);
    const std::array<std::pair<Positions*, Positions*>, 2> kinds{
        {{&sequence_starts, &sequence_ends}, {&literal_starts, &literal_ends}}};
    for (int kind = 0; kind < 2; ++kind) {
        for (int lane = 0; lane < kNumSubBlocks; ++lane) {
            (*kinds[kind].first)[lane] = static_cast<std::uint32_t>(position);
            position += std::uint64_t{bases[kind]} + bits.take(widths[kind]);
            if (position > size * 8) {
                return false;
            }
            (*kinds[kind].second)[lane] = static_cast<std::uint32_t>(position);
        }
    }
    return (position + 7) / 8 == size;
}

bool Decoder::decode_literals() {
    if (literals.size() < num_literals + kMargin) {
        literals.resize(num_literals + kMargin);
    }
    Positions positions = literal_starts;
    constexpr std::uint32_t kRows = 4;  // literals of one sub-block that one window of bits holds
    std::uint32_t first = 0;
    std::uint8_t* const out = literals.data();
    for (; first + kRows * kNumSubBlocks <= num_literals; first += kRows * kNumSubBlocks) {
        bool overrun = false;
        for (int lane = 0; lane < kNumSubBlocks; ++lane) {
            const std::uint32_t position = positions[lane];
            std::uint64_t window = load<std::uint64_t>(stream + (position >> 3)) >> (position & 7);
            std::uint32_t used = 0;
            for (std::uint32_t row = 0; row < kRows; ++row) {
                const std::uint32_t entry = literal_table[low_bits(window, kMaxLiteralBits)];
                out[first + row * kNumSubBlocks + lane] = static_cast<std::uint8_t>(entry);
                window >>= entry >> 8;
                used += entry >> 8;
            }
            positions[lane] = position + used;
            overrun |= position + used > literal_ends[lane];
        }
        if (overrun) {
            return false;
        }
    }
    for (; first < num_literals; ++first) {
        const int lane = static_cast<int>(first % kNumSubBlocks);
        const std::uint32_t position = positions[lane];
        const std::uint64_t window = load<std::uint64_t>(stream + (position >> 3)) >> (position & 7);
        const std::uint32_t entry = literal_table[low_bits(window, kMaxLiteralBits)];
        out[first] = static_cast<std::uint8_t>(entry);
        positions[lane] = position + (entry >> 8);
        if (entry == 0 || positions[lane] > literal_ends[lane]) {
            return false;
        }
    }
    return positions == literal_ends;
}

// Decodes one sequence of each of the first count sub-blocks. False when one passes its end.
[[gnu::always_inline]] inline bool decode_row(const Decoder& in, Positions& positions, int count, SequenceRow& row) {
    bool overrun = false;
    for (int lane = 0; lane < count; ++lane) {
        const std::uint32_t position = positions[lane];
        std::uint64_t window = load<std::uint64_t>(in.stream + (position >> 3)) >> (position & 7);
        const std::uint32_t token = in.token_table[low_bits(window, kMaxTokenBits)];
        const int codeword_bits = token & 15;
        const int literal_bits = (token >> kTokenLiteralBitsShift) & 15;
        const int match_bits = (token >> kTokenMatchBitsShift) & 15;
        const std::uint32_t match_base = token >> kTokenMatchBaseShift;
        window >>= codeword_bits;
        row.literal_length[lane] = ((token >> kTokenLiteralBaseShift) & 15) + low_bits(window, literal_bits);
        window >>= literal_bits;
        row.match_length[lane] = match_base + low_bits(window, match_bits);
        window >>= match_bits;
        std::uint32_t used = codeword_bits + literal_bits + match_bits;
        row.match_offset[lane] = 0;
        if (match_base != 0) [[likely]] {
            const std::uint32_t entry = in.offset_table[low_bits(window, kMaxOffsetBits)];
            const int extra_bits = (entry >> kOffsetExtraBitsShift) & 31;
            row.match_offset[lane] = (entry >> kOffsetBaseShift) + low_bits(window >> (entry & 15), extra_bits);
            used += (entry & 15) + extra_bits;
        }
        positions[lane] = position + used;
        overrun |= position + used > in.sequence_ends[lane];
    }
    return !overrun;
}

bool Decoder::decode_sequences(MutableBytes content) {
    Positions positions = sequence_starts;
    SequenceRow row;
    std::uint8_t* output = content.data();
    const std::uint8_t* const output_start = output;
    const std::uint8_t* const output_end = output + content.size();
    const std::uint8_t* literal = literals.data();
    const std::uint8_t* const literals_end = literal + num_literals;
    const std::uint32_t group_mask = (1u << group_size_log2) - 1;
    std::uint32_t last_offset = 0;
    for (std::uint32_t first = 0; first < num_sequences; first += kNumSubBlocks) {
        const int count = static_cast<int>(std::min<std::uint32_t>(kNumSubBlocks, num_sequences - first));
        if (!decode_row(*this, positions, count, row)) {
            return false;
        }
        for (int lane = 0; lane < count; ++lane) {
            const std::uint32_t literal_length = row.literal_length[lane];
            const std::uint32_t match_length = row.match_length[lane];
            last_offset = (lane & group_mask) == 0 ? 0 : last_offset;
            const std::size_t room = static_cast<std::size_t>(output_end - output);
            if (literal_length > static_cast<std::size_t>(literals_end - literal) ||
                literal_length + match_length > room) {
                return false;
            }
            const bool fast = literal_length + match_length + kMargin <= room;
            if (fast && literal_length <= 16) [[likely]] {
                copy_fixed<16>(output, literal);
            } else {
                std::copy_n(literal, literal_length, output);
            }
            literal += literal_length;
            output += literal_length;
            if (match_length == 0) {
                continue;
            }
            last_offset = row.match_offset[lane] != 0 ? row.match_offset[lane] : last_offset;
            if (last_offset == 0 || last_offset > static_cast<std::size_t>(output - output_start)) {
                return false;
            }
            if (fast && last_offset >= 16) [[likely]] {
                const std::uint8_t* source = output - last_offset;
                copy_fixed<16>(output, source);
                for (std::uint32_t done = 16; done < match_length; done += 16) {
                    copy_fixed<16>(output + done, source + done);
                }
            } else {
                copy_overlapping(output, last_offset, match_length);
            }
            output += match_length;
        }
    }
    return output == output_end && literal == literals_end && positions == sequence_ends;
}

}  // namespace

bool decode_bit(Bytes payload, MutableBytes content) {
    thread_local Decoder decoder;
    return decoder.read_header(payload, content.size()) && decoder.decode_literals() &&
           decoder.decode_sequences(content);
}

}  // namespace gompfs
