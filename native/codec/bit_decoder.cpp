// Decodes a gompresso-bit payload on one thread.
//
// On a GPU each lane of a warp decodes one sub-block. Here one thread visits the 32 sub-blocks in
// turn and decodes one sequence (or four literals) per visit. Neighbouring visits do not depend on
// each other, so the processor executes them in parallel, and the results appear in the order of
// the block.
//
// The payload is read in this order: header and code lengths (read_header, read_codes), sizes of
// the sub-blocks (read_sizes), all literals (decode_literals), then rows of 32 sequences: their
// fields (bit_row.h), then their bytes (copy_row). Reads past the end of a sub-block are harmless,
// because the payload ends with padding; after the last row every sub-block must have ended exactly
// where its size says, otherwise the payload is refused.
//
// gompresso-bit-dictionary is the same payload with more offset symbols. Whether a match comes from
// the dictionary cannot be predicted, so the fast loop has no branch on it: both sources are
// computed, and a mask chooses.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "codec/bit_codec.h"
#include "codec/bit_row.h"
#include "codec/huffman.h"
#include "codec/parse/bit_fields.h"
#include "codec/symbol_table.h"
#include "common/bit_stream.h"
#include "common/copy.h"
#include "common/little_endian.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

// The offset entry used if the payload has no offset code. No block is that large, so it is refused
// as an invalid match offset.
constexpr std::uint64_t kImpossibleOffset = std::uint64_t{kFromDictionary - 1} << 32;

bool is_empty(std::span<const std::uint8_t> lengths) {
    return std::all_of(lengths.begin(), lengths.end(),
                       [](std::uint8_t length) { return length == 0; });
}

// Number of literals that the fast loop copies at once.
constexpr std::size_t kFastLiterals = 16;

std::uint32_t literal_length_of(std::uint64_t sequence) { return sequence & 0xffff; }
std::uint32_t match_length_of(std::uint64_t sequence) { return (sequence >> 16) & 0xffff; }

std::uint32_t offset_of(std::uint64_t sequence) {
    return static_cast<std::uint32_t>(sequence >> 32);
}

// Copies a sequence that the fast loop cannot handle. Not inlined, so that the fast loop stays
// small.
[[gnu::noinline]] bool copy_slowly(std::uint64_t sequence, std::uint32_t offset,
                                   const std::uint8_t* literals_end, MutableBytes content,
                                   CopyCursor& at) {
    return copy_sequence_checked(literal_length_of(sequence), match_length_of(sequence), offset,
                                 literals_end, content, at);
}

// Likewise for a sequence whose match comes from the dictionary.
[[gnu::noinline]] bool copy_slowly_from(const SymbolTable& dictionary, std::uint64_t sequence,
                                        const std::uint8_t* literals_end, MutableBytes content,
                                        CopyCursor& at) {
    const std::uint32_t address = offset_of(sequence) & ~kFromDictionary;
    const std::uint32_t match_length = match_length_of(sequence);
    if (address + match_length > dictionary.dictionary_size ||
        !copy_slowly(sequence & 0xffff, 0, literals_end, content, at) ||
        match_length > static_cast<std::size_t>(content.data() + content.size() - at.output)) {
        return false;
    }
    at.output = std::copy_n(dictionary.pool.data() + address, match_length, at.output);
    return true;
}

// The sources of matches for the fast loop.
class Sources {
  public:
    Sources(const std::uint8_t* content, const SymbolTable* dictionary)
        : content_(content),
          dictionary_(dictionary != nullptr ? dictionary->pool.data() : nullptr) {}

    // Whether a match at `match` may have the offset. True for all addresses of the dictionary.
    template <bool kHasDictionary>
    [[gnu::always_inline]] bool may_have(const std::uint8_t* match, std::uint32_t offset) const {
        const auto reach = static_cast<std::size_t>(match - content_);
        return offset <= (kHasDictionary ? reach | from_dictionary(offset) : reach);
    }

    // The source of a match, without a branch: match - offset, or an address of the dictionary.
    template <bool kHasDictionary>
    [[gnu::always_inline]] const std::uint8_t* of(const std::uint8_t* match,
                                                  std::uint32_t offset) const {
        if constexpr (!kHasDictionary) {
            return match - offset;
        }
        const std::uint64_t mask = from_dictionary(offset);
        const auto in_content = reinterpret_cast<std::uintptr_t>(match) - offset;
        const auto in_dictionary =
            reinterpret_cast<std::uintptr_t>(dictionary_) + (offset & ~kFromDictionary);
        return reinterpret_cast<const std::uint8_t*>((in_content & ~mask) | (in_dictionary & mask));
    }

    // All ones for an offset from the dictionary, else 0.
    static std::uint64_t from_dictionary(std::uint32_t offset) {
        return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(offset)} >> 63);
    }

  private:
    const std::uint8_t* const content_;
    const std::uint8_t* const dictionary_;
};

struct Decoder {
    // The decoder is reused from block to block, so that tables and scratch memory are not
    // allocated again.
    std::array<std::uint16_t, 1 << kMaxLiteralBits> literal_table;
    TokenTable token_table;
    OffsetTable offset_table;
    std::vector<std::uint8_t> literals;
    Positions sequence_starts, sequence_ends, literal_starts, literal_ends;

    int group_size_log2;
    std::uint32_t num_sequences;
    std::uint32_t num_literals;
    const std::uint8_t* stream;
    std::uint32_t stream_bits;
    const SymbolTable* dictionary;  // null for a payload without a dictionary

    bool read_header(Bytes payload, std::size_t content_size);
    bool read_codes(Bytes code_lengths);
    bool read_sizes(Bytes payload, std::size_t at, const std::array<std::uint32_t, 2>& bases,
                    const std::array<int, 2>& widths);
    bool decode_literals();
    bool decode_sequences(MutableBytes content);
    bool decode_sequences_with_dictionary(MutableBytes content);
    template <bool kHasDictionary>
    bool decode_rows(MutableBytes content);
    template <bool kHasDictionary>
    bool copy_row(const std::uint64_t* fields, int count, MutableBytes content, CopyCursor& at);
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
    const std::array<std::uint32_t, 2> bases{load<std::uint32_t>(header + 12),
                                             load<std::uint32_t>(header + 16)};
    const std::uint32_t code_lengths_size = load<std::uint32_t>(header + 20);
    if (header[0] > kFlagDependencyElimination || group_size_log2 < kMinGroupSizeLog2 ||
        group_size_log2 > kMaxGroupSizeLog2 || widths[0] > kMaxSizeWidth ||
        widths[1] > kMaxSizeWidth || num_literals > content_size ||
        num_sequences > content_size + (1u << group_size_log2) ||
        code_lengths_size > payload.size() - kBitHeaderSize - kBitPadding) {
        return false;
    }
    return read_codes(payload.subspan(kBitHeaderSize, code_lengths_size)) &&
           read_sizes(payload, kBitHeaderSize + code_lengths_size, bases, widths);
}

bool Decoder::read_codes(Bytes code_lengths) {
    std::array<std::uint8_t, kNumSymbols> all_lengths;
    const std::size_t num_offsets = num_offset_symbols(dictionary != nullptr);
    const std::span<std::uint8_t> lengths =
        std::span(all_lengths).first(kFirstOffset + num_offsets);
    const std::span<const std::uint8_t> literal(lengths.data(), kNumLiteralSymbols);
    const std::span<const std::uint8_t> token(literal.end(), kNumTokenSymbols);
    const std::span<const std::uint8_t> offset(token.end(), num_offsets);
    const auto literal_entry = [&](std::size_t symbol) {
        return static_cast<std::uint16_t>(symbol | literal[symbol] << 8);
    };
    if (code_lengths.empty() || read_code_lengths(code_lengths, lengths) != code_lengths.size() ||
        (num_literals != 0 && is_empty(literal)) || (num_sequences != 0 && is_empty(token))) {
        return false;
    }
    if (is_empty(offset)) {
        offset_table.fill(kImpossibleOffset);
    }
    return build_decode_table(literal, literal_table, literal_entry) &&
           build_decode_table(token, token_table,
                              [&](auto symbol) { return token_entry(symbol, token[symbol]); }) &&
           (is_empty(offset) || build_decode_table(offset, offset_table, [&](auto symbol) {
                return offset_entry(symbol, offset[symbol]);
            }));
}

// Computes the start and end of every sub-block from the stored sizes. The last sub-block must end
// where the stream ends.
bool Decoder::read_sizes(Bytes payload, std::size_t at, const std::array<std::uint32_t, 2>& bases,
                         const std::array<int, 2>& widths) {
    const std::size_t size = payload.size() - kBitPadding - at;
    stream = payload.data() + at;
    stream_bits = static_cast<std::uint32_t>(size * 8);
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

GOMPFS_TARGET_CLONES bool Decoder::decode_literals() {
    if (literals.size() < num_literals) {
        literals.resize(num_literals);
    }
    Positions all_positions = literal_starts;
    // Raw pointers: in a target clone, GCC does not inline the operators of std::array.
    std::uint32_t* const positions = all_positions.data();
    const std::uint16_t* const table = literal_table.data();
    // Number of literals of a sub-block that are decoded from one 64-bit window.
    constexpr std::uint32_t kRows = 4;
    std::uint32_t first = 0;
    std::uint8_t* const out = literals.data();
    for (; first + kRows * kNumSubBlocks <= num_literals; first += kRows * kNumSubBlocks) {
        bool overrun = false;
        for (int lane = 0; lane < kNumSubBlocks; ++lane) {
            const std::uint32_t position = positions[lane];
            std::uint64_t window = load<std::uint64_t>(stream + (position >> 3)) >> (position & 7);
            std::uint32_t used = 0;
            for (std::uint32_t row = 0; row < kRows; ++row) {
                const std::uint32_t entry = table[low_bits(window, kMaxLiteralBits)];
                out[first + row * kNumSubBlocks + lane] = static_cast<std::uint8_t>(entry);
                window >>= entry >> 8;
                used += entry >> 8;
            }
            positions[lane] = position + used;
            overrun |= position + used > stream_bits;
        }
        if (overrun) {
            return false;
        }
    }
    for (; first < num_literals; ++first) {
        const int lane = static_cast<int>(first % kNumSubBlocks);
        const std::uint32_t position = positions[lane];
        const std::uint64_t window =
            load<std::uint64_t>(stream + (position >> 3)) >> (position & 7);
        const std::uint32_t entry = table[low_bits(window, kMaxLiteralBits)];
        out[first] = static_cast<std::uint8_t>(entry);
        positions[lane] = position + (entry >> 8);
        if (positions[lane] > stream_bits) {
            return false;
        }
    }
    return all_positions == literal_ends;
}

// Copies the sequences of one row; fields[lane] is the sequence of a lane. The fast loop may copy
// zeros from after the end of the dictionary: then the row is refused in the end.
template <bool kHasDictionary>
[[gnu::always_inline]] inline bool Decoder::copy_row(const std::uint64_t* fields, int count,
                                                     MutableBytes content, CopyCursor& at) {
    const std::uint8_t* const start = content.data();
    const std::uint8_t* const literals_end = literals.data() + num_literals;
    const std::uint8_t* const fast_output_end =
        start + content.size() -
        std::min<std::size_t>(content.size(), kFastLiterals + kBitMaxMatchLength + kCopyMargin);
    const std::uint8_t* const fast_literals_end =
        literals_end - std::min<std::size_t>(num_literals, kFastLiterals);
    const Sources sources(start, dictionary);
    std::uint32_t last_offset = 0;
    std::uint32_t farthest = 0;  // end of a match in the dictionary; ignores offsets in the content
    for (int lane = 0; lane < count; ++lane) {
        // The fast loop uses local copies of the cursor: a cursor that is passed by reference lives
        // in memory instead of registers.
        auto [output, literal] = at;
        for (; lane < count && output < fast_output_end && literal < fast_literals_end; ++lane) {
            const std::uint64_t sequence = fields[lane];
            const std::uint32_t literal_length = literal_length_of(sequence);
            const std::uint32_t match_length = match_length_of(sequence);
            const std::uint32_t offset_field = offset_of(sequence);
            const std::uint32_t offset = offset_field != 0 ? offset_field : last_offset;
            std::uint8_t* const match = output + literal_length;
            if (literal_length > kFastLiterals || match_length == 0 || offset < kMinFastOffset ||
                !sources.may_have<kHasDictionary>(match, offset)) [[unlikely]] {
                break;
            }
            prefetch_output(output);
            copy_fixed<kFastLiterals>(output, literal);
            copy_match_fast(match, sources.of<kHasDictionary>(match, offset), match_length);
            if constexpr (kHasDictionary) {
                farthest = std::max(farthest, offset + match_length);
                last_offset = is_from_dictionary(offset) ? last_offset : offset;
            } else {
                last_offset = offset;
            }
            literal += literal_length;
            output = match + match_length;
        }
        at = {output, literal};
        if (lane < count) {
            const std::uint32_t offset_field = offset_of(fields[lane]);
            if (kHasDictionary && is_from_dictionary(offset_field)) {
                if (!copy_slowly_from(*dictionary, fields[lane], literals_end, content, at)) {
                    return false;
                }
                continue;
            }
            last_offset = offset_field != 0 ? offset_field : last_offset;
            if (!copy_slowly(fields[lane], last_offset, literals_end, content, at)) {
                return false;
            }
        }
    }
    return !kHasDictionary || farthest <= (kFromDictionary | dictionary->dictionary_size);
}

template <bool kHasDictionary>
[[gnu::always_inline]] inline bool Decoder::decode_rows(MutableBytes content) {
    Positions positions = sequence_starts;
    SequenceRow row;
    const RowTables tables{stream, token_table.data(), offset_table.data()};
    const DecodeRow decode_row = select_decode_row();
    CopyCursor at{content.data(), literals.data()};
    for (std::uint32_t first = 0; first < num_sequences; first += kNumSubBlocks) {
        const int count =
            static_cast<int>(std::min<std::uint32_t>(kNumSubBlocks, num_sequences - first));
        if (decode_row(tables, positions.data(), count, row.data()) > stream_bits ||
            !copy_row<kHasDictionary>(row.data(), count, content, at)) {
            return false;
        }
    }
    return at.output == content.data() + content.size() &&
           at.literal == literals.data() + num_literals && positions == sequence_ends;
}

GOMPFS_TARGET_CLONES bool Decoder::decode_sequences(MutableBytes content) {
    return decode_rows<false>(content);
}

GOMPFS_TARGET_CLONES bool Decoder::decode_sequences_with_dictionary(MutableBytes content) {
    return decode_rows<true>(content);
}

}  // namespace

bool decode_bit(Bytes payload, MutableBytes content, const SymbolTable* dictionary) {
    // A pointer: in a shared library each access to a thread_local object is a function call.
    thread_local const auto decoder = std::make_unique<Decoder>();
    decoder->dictionary = dictionary;
    return decoder->read_header(payload, content.size()) && decoder->decode_literals() &&
           (dictionary == nullptr ? decoder->decode_sequences(content)
                                  : decoder->decode_sequences_with_dictionary(content));
}

}  // namespace gompfs
