// A whole block as an archive stores it: a header of 32 bytes, then the payload of its codec.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "codec/codec.h"
#include "codec/symbol_table.h"
#include "common/bytes.h"

namespace gompfs {

// The result of checking or decoding a block. The values equal those of gompfs.codec.BlockStatus.
enum class BlockStatus : std::uint8_t { ok, bad_header, bad_checksum, bad_payload, bad_content };

struct BlockHeader {
    Codec codec;
    std::uint32_t payload_size;
    std::uint32_t uncompressed_size;
    std::uint64_t content_xxh3;
    std::uint64_t block_xxh3;
};

// The kind of SymbolTable that a block needs to be decoded, if any.
enum class Supplement : std::uint8_t { none, symbols, dictionary };

inline Supplement supplement_of(const SymbolTable* table) {
    return table == nullptr         ? Supplement::none
           : table->is_dictionary() ? Supplement::dictionary
                                    : Supplement::symbols;
}

// Whether a block may have this codec where the archive supplies this. Blocks of a part with a head
// are gompresso-tadoc. Blocks of a part with a dictionary use it, or are stored.
bool is_allowed(Codec codec, Supplement supplement);

// Encodes one block of content, header and payload. The content is stored as it is if no payload
// would be smaller. With a dictionary the codec is gompresso-bit-dictionary.
std::vector<std::uint8_t> encode_block(Bytes content, const EncodeOptions& options);

// Encodes one block as encode_block does, and decodes it. If that fails or gives other bytes, adds
// one to `num_wrong`, and returns a block that stores the content as it is.
std::vector<std::uint8_t> encode_checked_block(Bytes content, const EncodeOptions& options,
                                               std::atomic<std::uint32_t>& num_wrong);

// Returns a payload with a header before it.
std::vector<std::uint8_t> frame_block(Codec codec, Bytes payload, std::uint32_t uncompressed_size,
                                      std::uint64_t content_xxh3);

// Writes the payload of `content`, with a header before it, to `block`, which has their size.
void write_block(Codec codec, Bytes payload, Bytes content, MutableBytes block);

// Returns the header at the start of `block`, or nothing if there is no valid one.
std::optional<BlockHeader> parse_block_header(Bytes block);

// Checks the compressed bytes against the block's checksum, and their number against the header.
BlockStatus check_block(const BlockHeader& header, Bytes block);

// Checks decoded bytes against the checksum of the content.
bool is_content(const BlockHeader& header, Bytes content);

// Decodes `block`, whose header is given, into `content` of header.uncompressed_size bytes. The
// compressed bytes are checked before a decoder sees them; the decoded bytes are checked if
// `verify` is set. If the block is damaged, fills `content` with zeros. `symbols` are those of the
// block's part, its dictionary, or null. A block whose codec is not allowed with them has a bad
// header.
BlockStatus decode_block(const BlockHeader& header, Bytes block, bool verify, MutableBytes content,
                         const SymbolTable* symbols = nullptr);

}  // namespace gompfs
