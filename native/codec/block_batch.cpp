// Distributes the blocks of a batch over threads; see block_batch.h.
#include "codec/block_batch.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "codec/payload.h"
#include "common/little_endian.h"
#include "common/parallel.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

struct DecodeJob {
    Bytes block;
    std::optional<BlockHeader> header;
    MutableBytes content;
};

using Sizes = std::optional<std::span<const std::uint32_t>>;

// Pairs each block with its header and its range of `out`; the ranges follow each other. With
// `sizes`, a block whose header gives another size has no valid header.
std::vector<DecodeJob> assign_ranges(std::span<const Bytes> blocks, MutableBytes out,
                                     const Sizes& sizes) {
    if (sizes && sizes->size() != blocks.size()) {
        throw std::invalid_argument("each block needs a size");
    }
    std::vector<DecodeJob> jobs;
    jobs.reserve(blocks.size());
    std::size_t total = 0;
    for (const Bytes block : blocks) {
        auto header = parse_block_header(block);
        std::size_t size = header ? header->uncompressed_size : 0;
        if (sizes && (*sizes)[jobs.size()] != size) {
            header.reset();
            size = (*sizes)[jobs.size()];
        }
        const bool fits = total + size <= out.size();
        jobs.push_back({block, header, fits ? out.subspan(total, size) : MutableBytes()});
        total += size;
    }
    if (total > out.size()) {
        throw std::invalid_argument("the blocks hold " + std::to_string(total) +
                                    " bytes, the output only " + std::to_string(out.size()));
    }
    return jobs;
}

// A column of offsets, one for each block.
class Offsets {
  public:
    Offsets(Bytes column, std::size_t num_blocks) : column_(column) {
        if (column.size() != num_blocks * sizeof(std::uint64_t)) {
            throw std::invalid_argument("each block needs an offset");
        }
    }
    std::uint64_t operator[](std::size_t index) const {
        return load<std::uint64_t>(column_.data() + index * sizeof(std::uint64_t));
    }

  private:
    const Bytes column_;
};

// A stream that is cut into blocks to be encoded.
class CutStream {
  public:
    CutStream(Bytes stream, std::size_t block_size, const EncodeOptions& options)
        : stream_(stream), block_size_(block_size) {
        if (block_size == 0 || block_size > kMaxBlockSize) {
            throw std::invalid_argument("block_size is out of bounds");
        }
        check_options(options);
    }
    std::size_t num_blocks() const { return (stream_.size() + block_size_ - 1) / block_size_; }
    Bytes operator[](std::size_t index) const {
        const std::size_t start = index * block_size_;
        return stream_.subspan(start, std::min(block_size_, stream_.size() - start));
    }

  private:
    const Bytes stream_;
    const std::size_t block_size_;
};

// The payload of each block of a stream.
std::vector<Bytes> split_payloads(const DevicePayloads& payloads, const CutStream& cut) {
    const std::size_t num_blocks = cut.num_blocks();
    if (payloads.sizes.size() != num_blocks * sizeof(std::uint32_t) ||
        payloads.failed.size() != num_blocks) {
        throw std::invalid_argument("each block needs a payload");
    }
    constexpr std::size_t kAlignment = DevicePayloads::kPayloadAlignment;
    std::vector<Bytes> separate;
    separate.reserve(num_blocks);
    std::size_t start = 0;
    for (std::size_t index = 0; index < num_blocks; ++index) {
        const auto size =
            load<std::uint32_t>(payloads.sizes.data() + index * sizeof(std::uint32_t));
        if (start > payloads.packed.size() || size > payloads.packed.size() - start ||
            size >= cut[index].size()) {
            throw std::invalid_argument("a payload has an impossible size");
        }
        separate.push_back(payloads.packed.subspan(start, size));
        start += (size + kAlignment - 1) / kAlignment * kAlignment;
    }
    return separate;
}

BlockStatus copy_payload(Bytes block, const BlockFacts& facts, std::uint64_t offset,
                         MutableBytes out) {
    if (static_cast<BlockStatus>(facts.status) != BlockStatus::ok || offset > out.size() ||
        facts.payload_size > out.size() - offset) {
        return BlockStatus::bad_header;
    }
    const BlockHeader header{.codec = static_cast<Codec>(facts.codec),
                             .payload_size = facts.payload_size,
                             .uncompressed_size = facts.uncompressed_size,
                             .content_xxh3 = facts.content_xxh3,
                             .block_xxh3 = facts.block_xxh3};
    const BlockStatus status = check_block(header, block);
    if (status == BlockStatus::ok) {
        const Bytes payload = block.subspan(kBlockHeaderSize);
        std::copy(payload.begin(), payload.end(), out.subspan(offset).begin());
    }
    return status;
}

}  // namespace

std::vector<std::vector<std::uint8_t>> encode_blocks(Bytes stream, std::size_t block_size,
                                                     const EncodeOptions& options,
                                                     unsigned num_threads) {
    const CutStream cut(stream, block_size, options);
    std::vector<std::vector<std::uint8_t>> blocks(cut.num_blocks());
    parallel_for(blocks.size(), num_threads,
                 [&](std::size_t index) { blocks[index] = encode_block(cut[index], options); });
    return blocks;
}

FramedBlocks::FramedBlocks(Bytes stream, std::size_t block_size, const EncodeOptions& options,
                           const DevicePayloads& payloads, unsigned num_threads) {
    const CutStream cut(stream, block_size, options);
    const std::vector<Bytes> separate = split_payloads(payloads, cut);
    frames_.resize(cut.num_blocks());
    parallel_for(frames_.size(), num_threads, [&](std::size_t index) {
        Frame& frame = frames_[index];
        frame.content = cut[index];
        const bool is_stored = separate[index].empty();
        frame.codec = is_stored ? Codec::stored : options.codec;
        frame.payload = is_stored ? frame.content : separate[index];
        if (payloads.failed[index] != 0) {
            frame.encoded = encode_block(frame.content, options);
        }
    });
}

std::size_t FramedBlocks::size(std::size_t index) const {
    const Frame& frame = frames_[index];
    return frame.encoded.empty() ? kBlockHeaderSize + frame.payload.size() : frame.encoded.size();
}

void FramedBlocks::write(std::span<const MutableBytes> blocks, unsigned num_threads) const {
    parallel_for(frames_.size(), num_threads, [&](std::size_t index) {
        const Frame& frame = frames_[index];
        if (frame.encoded.empty()) {
            write_block(frame.codec, frame.payload, frame.content, blocks[index]);
        } else {
            std::copy(frame.encoded.begin(), frame.encoded.end(), blocks[index].begin());
        }
    });
}

std::vector<BlockStatus> decode_blocks(std::span<const Bytes> blocks, MutableBytes out,
                                       std::optional<std::span<const std::uint32_t>> sizes,
                                       std::span<const SymbolTable* const> symbols, bool verify,
                                       unsigned num_threads) {
    if (!symbols.empty() && symbols.size() != blocks.size()) {
        throw std::invalid_argument("each block needs the symbols of its part");
    }
    const std::vector<DecodeJob> jobs = assign_ranges(blocks, out, sizes);
    std::vector<BlockStatus> statuses(jobs.size(), BlockStatus::bad_header);
    parallel_for(jobs.size(), num_threads, [&](std::size_t index) {
        const DecodeJob& job = jobs[index];
        if (job.header) {
            statuses[index] = decode_block(*job.header, job.block, verify, job.content,
                                           symbols.empty() ? nullptr : symbols[index]);
        } else {
            std::fill(job.content.begin(), job.content.end(), std::uint8_t{0});
        }
    });
    return statuses;
}

BlockFacts read_facts(Bytes block, Supplement supplement) {
    const auto header = parse_block_header(block);
    if (!header) {
        return {static_cast<std::uint32_t>(BlockStatus::bad_header), 0, 0, 0, 0, 0};
    }
    const bool has_size = block.size() == kBlockHeaderSize + std::size_t{header->payload_size};
    const BlockStatus status = has_size && is_allowed(header->codec, supplement)
                                   ? BlockStatus::ok
                                   : BlockStatus::bad_header;
    return {static_cast<std::uint32_t>(status),
            static_cast<std::uint32_t>(header->codec),
            header->payload_size,
            header->uncompressed_size,
            header->content_xxh3,
            header->block_xxh3};
}

std::vector<BlockStatus> gather_payloads(std::span<const Bytes> blocks, Bytes facts, Bytes offsets,
                                         MutableBytes out, unsigned num_threads) {
    const Offsets offset_of(offsets, blocks.size());
    if (facts.size() != blocks.size() * sizeof(BlockFacts)) {
        throw std::invalid_argument("each block needs the facts of its header");
    }
    std::vector<BlockStatus> statuses(blocks.size());
    parallel_for(blocks.size(), num_threads, [&](std::size_t index) {
        const auto of_block = load<BlockFacts>(facts.data() + index * sizeof(BlockFacts));
        statuses[index] = copy_payload(blocks[index], of_block, offset_of[index], out);
    });
    return statuses;
}

bool are_possible_block_sizes(Bytes sizes) {
    for (std::size_t at = 0; at < sizes.size(); at += sizeof(std::uint32_t)) {
        const auto size = load<std::uint32_t>(sizes.data() + at);
        if (size < kBlockHeaderSize || size > kBlockHeaderSize + kMaxBlockSize) {
            return false;
        }
    }
    return true;
}

}  // namespace gompfs
