// Batches of whole blocks, encoded, checked and decoded on several threads. One thread works on one
// block. A damaged block is reported by a status for each block, not by an exception: the caller
// decides what a damaged block means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/block.h"
#include "common/bytes.h"

namespace gompfs {

// Cuts `stream` into blocks of block_size bytes (the last may be shorter) and encodes each, with
// header. Throws std::invalid_argument for a block size, level or group size that does not
// exist.
std::vector<std::vector<std::uint8_t>> encode_blocks(Bytes stream, std::size_t block_size,
                                                     const EncodeOptions& options,
                                                     unsigned num_threads);

// The payloads of a stream's blocks as a device made them: one after another, each at a multiple of
// kPayloadAlignment. A block without a payload (size 0) is stored. If `failed` is not 0, the
// device has no result.
struct DevicePayloads {
    static constexpr std::size_t kPayloadAlignment = 16;
    Bytes packed;
    Bytes sizes;   // u32 for each block
    Bytes failed;  // u8 for each block
};

// The blocks that encode_blocks would return, with these payloads. The arguments must outlive them.
class FramedBlocks {
  public:
    // Encodes the blocks whose payload failed. Throws std::invalid_argument as encode_blocks does,
    // and if there are not as many payloads as blocks, or if a payload is not smaller than its
    // block or not inside `packed`.
    FramedBlocks(Bytes stream, std::size_t block_size, const EncodeOptions& options,
                 const DevicePayloads& payloads, unsigned num_threads);

    std::size_t num_blocks() const { return frames_.size(); }
    std::size_t size(std::size_t index) const;

    // Writes each block to its memory, which has its size.
    void write(std::span<const MutableBytes> blocks, unsigned num_threads) const;

  private:
    struct Frame {
        Codec codec;
        Bytes payload;
        Bytes content;
        std::vector<std::uint8_t> encoded;  // the block itself, if the device has no payload
    };

    std::vector<Frame> frames_;
};

// Checks and decodes blocks one after another into `out`. Returns a status for each block. With
// `sizes`, block i should decode to sizes[i] bytes; otherwise it has the status bad_header and that
// many zeros. `symbols` has the symbols of each block's part or its dictionary, null for none; or
// it is empty, if no block needs any. Throws std::invalid_argument if `out` is too small, or if a
// size or symbols are missing.
std::vector<BlockStatus> decode_blocks(std::span<const Bytes> blocks, MutableBytes out,
                                       std::optional<std::span<const std::uint32_t>> sizes,
                                       std::span<const SymbolTable* const> symbols, bool verify,
                                       unsigned num_threads);

// The fields of the header of a block. gompfs.codec.headers reads arrays of these records.
struct BlockFacts {
    // A BlockStatus. Of read_facts: ok, or bad_header, also for a wrong size and for a codec that
    // is not allowed.
    std::uint32_t status;
    std::uint32_t codec;
    std::uint32_t payload_size;
    std::uint32_t uncompressed_size;  // 0 if there is no valid header
    std::uint64_t content_xxh3;
    std::uint64_t block_xxh3;
};
BlockFacts read_facts(Bytes block, Supplement supplement = Supplement::none);

// Checks blocks, whose BlockFacts are given, and copies the payload of each intact block to its
// offset in `out`. Returns a status for each block: bad_header also for a payload that would not
// fit into `out`. Throws std::invalid_argument unless there are facts and an offset (u64) for each
// block.
std::vector<BlockStatus> gather_payloads(std::span<const Bytes> blocks, Bytes facts, Bytes offsets,
                                         MutableBytes out, unsigned num_threads);

// Returns whether all items of a column of compressed_size (u32) are possible sizes of blocks.
bool are_possible_block_sizes(Bytes sizes);

}  // namespace gompfs
