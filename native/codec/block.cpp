// Writes, parses and checks blocks; see block.h.
//
// A header ends with a checksum (XXH3, 64 bits) of all other bytes of the block. So a decoder only
// ever sees payloads that are as they were written, or were forged. Decoders must be safe for both;
// the checksum makes accidental damage detectable before decoding.
#include "codec/block.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>

#include "codec/bit_codec.h"
#include "codec/payload.h"
#include "codec/tadoc_codec.h"
#include "common/little_endian.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

constexpr std::array<std::uint8_t, 4> kBlockMagic{'G', 'B', 'L', 'K'};
constexpr std::size_t kFieldsSize = kBlockHeaderSize - sizeof(std::uint64_t);

// The checksum of a block: of all its bytes except the checksum itself, which ends the header.
std::uint64_t block_xxh3(Bytes block) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, block.data(), kFieldsSize);
    XXH3_64bits_update(&state, block.data() + kBlockHeaderSize, block.size() - kBlockHeaderSize);
    return XXH3_64bits_digest(&state);
}

// Writes a header, and the payload after it.
void fill_block(Codec codec, Bytes payload, std::uint32_t uncompressed_size,
                std::uint64_t content_xxh3, MutableBytes block) {
    std::uint8_t* const fields = std::copy(kBlockMagic.begin(), kBlockMagic.end(), block.data());
    store(fields, static_cast<std::uint32_t>(codec));
    store(fields + 4, static_cast<std::uint32_t>(payload.size()));
    store(fields + 8, uncompressed_size);
    store(fields + 12, content_xxh3);
    std::copy(payload.begin(), payload.end(), block.data() + kBlockHeaderSize);
    store(block.data() + kFieldsSize, block_xxh3(block));
}

// Whether a block or a head may have these fields.
bool is_possible(std::uint32_t codec, const BlockHeader& header) {
    if (codec == static_cast<std::uint32_t>(Codec::head)) {
        return header.payload_size <= kMaxHeadPayload && header.uncompressed_size != 0 &&
               header.uncompressed_size <= kMaxPoolSize;
    }
    const std::uint32_t margin =
        codec == static_cast<std::uint32_t>(Codec::gompresso_tadoc) ? kTadocMaxOverhead : 0;
    return codec <= static_cast<std::uint32_t>(Codec::gompresso_bit_dictionary) &&
           header.uncompressed_size != 0 && header.uncompressed_size <= kMaxBlockSize &&
           header.payload_size <= header.uncompressed_size + margin;
}

bool decode_any_payload(const BlockHeader& header, Bytes payload, MutableBytes content,
                        const SymbolTable* symbols) {
    switch (header.codec) {
        case Codec::gompresso_tadoc:
            return decode_tadoc(payload, *symbols, content);
        case Codec::gompresso_bit_dictionary:
            return decode_bit(payload, content, symbols);
        default:
            return decode_payload(header.codec, payload, content);
    }
}

BlockStatus decode_checked(const BlockHeader& header, Bytes block, bool verify,
                           MutableBytes content, const SymbolTable* symbols) {
    if (!is_allowed(header.codec, supplement_of(symbols))) {
        return BlockStatus::bad_header;
    }
    const BlockStatus status = check_block(header, block);
    if (status != BlockStatus::ok) {
        return status;
    }
    if (!decode_any_payload(header, block.subspan(kBlockHeaderSize), content, symbols)) {
        return BlockStatus::bad_payload;
    }
    return verify && !is_content(header, content) ? BlockStatus::bad_content : BlockStatus::ok;
}

}  // namespace

bool is_allowed(Codec codec, Supplement supplement) {
    switch (supplement) {
        case Supplement::none:
            return codec <= Codec::gompresso_bit;
        case Supplement::symbols:
            return codec == Codec::gompresso_tadoc;
        case Supplement::dictionary:
            return codec == Codec::stored || codec == Codec::gompresso_bit_dictionary;
    }
    return false;
}

std::vector<std::uint8_t> frame_block(Codec codec, Bytes payload, std::uint32_t uncompressed_size,
                                      std::uint64_t content_xxh3) {
    std::vector<std::uint8_t> block(kBlockHeaderSize + payload.size());
    fill_block(codec, payload, uncompressed_size, content_xxh3, block);
    return block;
}

void write_block(Codec codec, Bytes payload, Bytes content, MutableBytes block) {
    fill_block(codec, payload, static_cast<std::uint32_t>(content.size()),
               XXH3_64bits(content.data(), content.size()), block);
}

std::vector<std::uint8_t> encode_block(Bytes content, const EncodeOptions& options) {
    const std::optional<std::vector<std::uint8_t>> encoded = encode_payload(content, options);
    return frame_block(
        encoded ? written_codec(options) : Codec::stored, encoded ? Bytes(*encoded) : content,
        static_cast<std::uint32_t>(content.size()), XXH3_64bits(content.data(), content.size()));
}

std::vector<std::uint8_t> encode_checked_block(Bytes content, const EncodeOptions& options,
                                               std::atomic<std::uint32_t>& num_wrong) {
    std::vector<std::uint8_t> block = encode_block(content, options);
    const std::optional<BlockHeader> header = parse_block_header(block);
    std::vector<std::uint8_t> decoded(content.size());
    if (header && header->uncompressed_size == content.size() &&
        decode_block(*header, block, true, decoded) == BlockStatus::ok) {
        return block;
    }
    ++num_wrong;
    return frame_block(Codec::stored, content, static_cast<std::uint32_t>(content.size()),
                       XXH3_64bits(content.data(), content.size()));
}

std::optional<BlockHeader> parse_block_header(Bytes block) {
    if (block.size() < kBlockHeaderSize ||
        !std::equal(kBlockMagic.begin(), kBlockMagic.end(), block.begin())) {
        return std::nullopt;
    }
    const std::uint8_t* fields = block.data() + kBlockMagic.size();
    const auto codec = load<std::uint32_t>(fields);  // one byte, and three reserved bytes
    const BlockHeader header{static_cast<Codec>(codec), load<std::uint32_t>(fields + 4),
                             load<std::uint32_t>(fields + 8), load<std::uint64_t>(fields + 12),
                             load<std::uint64_t>(fields + 20)};
    return is_possible(codec, header) ? std::optional(header) : std::nullopt;
}

BlockStatus check_block(const BlockHeader& header, Bytes block) {
    if (block.size() != kBlockHeaderSize + std::size_t{header.payload_size}) {
        return BlockStatus::bad_header;
    }
    return block_xxh3(block) == header.block_xxh3 ? BlockStatus::ok : BlockStatus::bad_checksum;
}

bool is_content(const BlockHeader& header, Bytes content) {
    return XXH3_64bits(content.data(), content.size()) == header.content_xxh3;
}

BlockStatus decode_block(const BlockHeader& header, Bytes block, bool verify, MutableBytes content,
                         const SymbolTable* symbols) {
    const BlockStatus status = decode_checked(header, block, verify, content, symbols);
    if (status != BlockStatus::ok) {
        std::fill(content.begin(), content.end(), std::uint8_t{0});
    }
    return status;
}

}  // namespace gompfs
