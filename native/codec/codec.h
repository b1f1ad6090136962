// The codecs of docs/format.md: encode the content of one block to a payload, and decode a payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gompfs {

enum class Codec : std::uint8_t { stored = 0, gompresso_byte = 1, gompresso_bit = 2 };

// Larger groups compress less (docs/decisions/0001-groups-of-four.md).
constexpr int kDefaultGroupSizeLog2 = 2;

struct EncodeOptions {
    Codec codec;
    int level;  // 1 (fastest) to 9 (smallest)
    bool dependency_elimination;
    int group_size_log2 = kDefaultGroupSizeLog2;
};

using Bytes = std::span<const std::uint8_t>;
using MutableBytes = std::span<std::uint8_t>;

// Returns the payload for the content of one block, or nothing if it would not be smaller than the
// content.
std::optional<std::vector<std::uint8_t>> encode_payload(Bytes content,
                                                        const EncodeOptions& options);

// Decodes a payload into exactly content.size() bytes. Returns false if the payload is not valid;
// content is then undefined, but nothing outside `content` was written and nothing outside
// `payload` was read.
bool decode_payload(Codec codec, Bytes payload, MutableBytes content);

}  // namespace gompfs
