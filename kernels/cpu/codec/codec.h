// The codecs of docs/format.md: one payload in, one block's bytes out, and the reverse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gompfs {

enum class Codec : std::uint8_t { stored = 0, gompresso_byte = 1, gompresso_bit = 2 };

// Groups of 4 sequences: larger ones cost ratio (docs/decisions/0001-groups-of-four.md).
constexpr int kDefaultGroupSizeLog2 = 2;

struct EncodeOptions {
    Codec codec;
    int level;  // 1 (fastest) to 9 (smallest)
    bool dependency_elimination;
    int group_size_log2 = kDefaultGroupSizeLog2;
};

using Bytes = std::span<const std::uint8_t>;
using MutableBytes = std::span<std::uint8_t>;

// The payload for one block of content, or nothing where it would not be smaller.
std::optional<std::vector<std::uint8_t>> encode_payload(Bytes content,
                                                        const EncodeOptions& options);

// Decodes a payload into exactly content.size() bytes. False for any payload that is not valid;
// content is then undefined, but nothing outside it was written and nothing outside payload was
// read.
bool decode_payload(Codec codec, Bytes payload, MutableBytes content);

}  // namespace gompfs
