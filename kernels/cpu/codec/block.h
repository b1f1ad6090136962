// A whole block as it lies in an archive: a header of 32 bytes, then the payload of its codec.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codec/codec.h"

namespace gompfs {

// What became of a block; the numbers are those of gompfs.codec.BlockStatus.
enum class BlockStatus : std::uint8_t { ok, bad_header, bad_checksum, bad_payload, bad_content };

struct BlockHeader {
    Codec codec;
    std::uint32_t payload_size;
    std::uint32_t uncompressed_size;
    std::uint64_t content_xxh3;
    std::uint64_t block_xxh3;
};

// Header and payload for one block of content; stored where no payload would be smaller.
std::vector<std::uint8_t> encode_block(Bytes content, const EncodeOptions& options);

// The header at the start of block, or nothing where there is none.
std::optional<BlockHeader> parse_block_header(Bytes block);

// Whether the compressed bytes are those that were written, and in the amount that the header says.
BlockStatus check_block(const BlockHeader& header, Bytes block);

// Whether decoded bytes are those that were compressed.
bool is_content(const BlockHeader& header, Bytes content);

// Decodes block, whose header is given, into content of header.uncompressed_size bytes. The
// compressed bytes are checked before any decoder sees them, the decoded ones where verify is set;
// content is zeros where the block is damaged.
BlockStatus decode_block(const BlockHeader& header, Bytes block, bool verify, MutableBytes content);

}  // namespace gompfs
