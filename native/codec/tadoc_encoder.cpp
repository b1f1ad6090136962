// Encodes a payload of gompresso-tadoc; see tadoc_codec.h. Symbol i goes to sub-block i % 32.
#include <algorithm>

#include "codec/sub_blocks.h"
#include "codec/tadoc_codec.h"
#include "common/little_endian.h"

namespace gompfs {

std::vector<std::uint8_t> encode_tadoc(std::span<const std::uint32_t> ranks, std::uint16_t skip,
                                       const ClassEncoder& code) {
    constexpr int kMaxBits = kMaxClassBits + 20;
    const std::size_t capacity = sub_block_capacity(ranks.size(), kMaxBits);
    std::vector<std::uint8_t> bytes(capacity * kNumSubBlocks);
    SubBlocks sub_blocks;
    for (int lane = 0; lane < kNumSubBlocks; ++lane) {
        sub_blocks[lane] = BitWriter(bytes.data() + lane * capacity);
    }
    for (std::size_t index = 0; index < ranks.size(); ++index) {
        const auto [bits, num_bits] = code.bits_of_number(ranks[index]);
        sub_blocks[index % kNumSubBlocks].put(bits, num_bits);
    }
    const SizeFrame frame = size_frame(sub_blocks);
    std::vector<std::uint8_t> payload(kTadocHeaderSize + kMaxSizesBytes + bytes.size() +
                                      kBitPadding);
    store(&payload[0], static_cast<std::uint32_t>(ranks.size()));
    store(&payload[4], frame.base);
    store(&payload[8], skip);
    payload[10] = static_cast<std::uint8_t>(frame.width);
    BitWriter out(payload.data() + kTadocHeaderSize);
    put_sizes(out, sub_blocks, frame);
    for (const BitWriter& sub_block : sub_blocks) {
        out.put_all(sub_block);
    }
    payload.resize(kTadocHeaderSize + out.num_bytes());
    payload.resize(payload.size() + kBitPadding);
    return payload;
}

}  // namespace gompfs
