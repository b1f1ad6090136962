// Writes the payload of a head; see head.h.
//
// The thirteen arrays are collected as numbers or classes first, because a code needs the counts of
// all of its items before the first one can be written.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>

#include "codec/payload.h"
#include "codec/sub_blocks.h"
#include "common/little_endian.h"
#include "common/shared_prefix.h"
#include "text/head.h"

namespace gompfs {
namespace {

constexpr int kRankArray = 12;
// The parser of the highest level is for the content of a block. Token bytes may have more.
constexpr int kLevelOfLargeContent = 7;
// Parsers may find matches at any distance, and the last offset symbol ends here: 3 * 2^19 - 2.
constexpr std::size_t kMaxOffset = (std::size_t{3} << 19) - 2;
// Global words below these numbers have arrays of their own: gaps between them are smaller.
constexpr std::uint32_t kFrequentWords = 4096;
constexpr std::uint32_t kCommonWords = 65536;

struct Array {
    std::vector<std::uint32_t> items;
    bool are_classes = false;
};

using Arrays = std::array<Array, kNumHeadArrays>;

// Appends the bytes of local words without their prefixes, and puts the prefixes into an array.
void put_local_words(const TokenList& words, std::vector<std::uint8_t>& bytes, Array& prefixes) {
    std::string_view before;
    for (std::uint32_t index = 0; index < words.size(); ++index) {
        const std::string_view word = words[index];
        const std::size_t prefix = shared_prefix(before, word);
        prefixes.items.push_back(static_cast<std::uint32_t>(prefix));
        bytes.insert(bytes.end(), word.begin() + static_cast<std::ptrdiff_t>(prefix), word.end());
        bytes.push_back(' ');
        before = word;
    }
}

void put_local_separators(const TokenList& separators, std::vector<std::uint8_t>& bytes,
                          Array& sizes) {
    for (std::uint32_t index = 0; index < separators.size(); ++index) {
        const std::string_view separator = separators[index];
        sizes.items.push_back(static_cast<std::uint32_t>(separator.size() - 1));
        bytes.insert(bytes.end(), separator.begin(), separator.end());
    }
}

void put_global_numbers(const Head& head, Arrays& arrays) {
    std::uint32_t next = 0;
    for (const std::uint32_t number : head.global_words) {
        const int array = number < kFrequentWords ? 2 : number < kCommonWords ? 3 : 4;
        arrays[array].items.push_back(number - next);
        next = number + 1;
    }
    next = 0;
    for (const std::uint32_t number : head.global_separators) {
        arrays[5].items.push_back(number - next);
        next = number + 1;
    }
}

void put_classes(const Head& head, Arrays& arrays) {
    const auto put = [&](int array, std::uint32_t begin, std::uint32_t end) {
        arrays[array].are_classes = true;
        arrays[array].items.insert(arrays[array].items.end(), head.classes.begin() + begin,
                                   head.classes.begin() + end);
    };
    const std::uint32_t first_global = head.first_word() + head.local_words.size();
    put(6, head.first_word(), first_global);
    put(7, first_global, head.first_separator());
    put(8, 0, head.first_word());
    put(8, head.first_separator(), head.first_rule());
    put(9, head.first_rule(), static_cast<std::uint32_t>(head.classes.size()));
}

void put_rules(const HeadRules& rules, Arrays& arrays) {
    std::uint32_t rule = 0;
    for (const std::uint32_t level_size : rules.level_sizes) {
        std::uint32_t before = 0;
        for (std::uint32_t index = 0; index < level_size; ++index, ++rule) {
            const std::uint32_t start = rules.starts[rule], end = rules.starts[rule + 1];
            arrays[10].items.push_back(end - start - 2);
            arrays[11].items.push_back(rules.ranks[start] - before);
            before = rules.ranks[start];
            arrays[kRankArray].items.insert(arrays[kRankArray].items.end(),
                                            rules.ranks.begin() + start + 1,
                                            rules.ranks.begin() + end);
        }
    }
}

std::vector<std::uint8_t> write_codes(const HeadRules& rules, const Arrays& arrays,
                                      std::array<ClassEncoder, kNumHeadArrays>& codes) {
    std::vector<std::uint8_t> bytes(1 + rules.level_sizes.size() * 6 +
                                    kNumHeadArrays * ClassEncoder::kMaxBytes + BitWriter::kSlack);
    BitWriter out(bytes.data());
    out.put(rules.level_sizes.size(), kNumLevelsBits);
    for (const std::uint32_t size : rules.level_sizes) {
        const int num_bits = std::bit_width(size) - 1;
        out.put((std::uint64_t{1} << num_bits) - 1, num_bits + 1);
        out.put(size - (std::uint32_t{1} << num_bits), num_bits);
    }
    for (int array = 0; array < kNumHeadArrays; ++array) {
        // The ranks have been counted already, with those of the blocks.
        for (const std::uint32_t item : arrays[array].items) {
            if (arrays[array].are_classes) {
                codes[array].count_class(static_cast<int>(item));
            } else if (array != kRankArray) {
                codes[array].count_number(item);
            }
        }
        codes[array].build(ClassTable::kShortBits);
        codes[array].write_lengths(out);
    }
    bytes.resize(out.num_bytes());
    return bytes;
}

// Writes the arrays to 32 sub-blocks in `bytes`.
SubBlocks write_arrays(const Arrays& arrays, const std::array<ClassEncoder, kNumHeadArrays>& codes,
                       std::vector<std::uint8_t>& bytes) {
    std::size_t num_items = 0;
    for (const Array& array : arrays) {
        num_items += array.items.size() + kNumSubBlocks;  // each begins at sub-block 0
    }
    const std::size_t capacity = sub_block_capacity(num_items, kMaxClassBits + 30);
    bytes.resize(capacity * kNumSubBlocks);
    SubBlocks sub_blocks;
    for (int lane = 0; lane < kNumSubBlocks; ++lane) {
        sub_blocks[lane] = BitWriter(bytes.data() + lane * capacity);
    }
    for (int array = 0; array < kNumHeadArrays; ++array) {
        const std::vector<std::uint32_t>& items = arrays[array].items;
        for (std::size_t index = 0; index < items.size(); ++index) {
            const auto [bits, num_bits] =
                arrays[array].are_classes
                    ? codes[array].bits_of_class(static_cast<int>(items[index]))
                    : codes[array].bits_of_number(items[index]);
            sub_blocks[index % kNumSubBlocks].put(bits, num_bits);
        }
    }
    return sub_blocks;
}

void store_fields(const Head& head, const HeadRules& rules, const Arrays& arrays,
                  std::uint8_t* bytes) {
    store(bytes, head.local_words.size());
    store(bytes + 4, static_cast<std::uint32_t>(head.global_words.size()));
    store(bytes + 8, head.local_separators.size());
    store(bytes + 12, static_cast<std::uint32_t>(head.global_separators.size()));
    store(bytes + 16, static_cast<std::uint32_t>(rules.starts.size() - 1));
    store(bytes + 32, static_cast<std::uint16_t>(arrays[2].items.size()));
    store(bytes + 34, static_cast<std::uint16_t>(arrays[3].items.size()));
    bytes[39] = head.has_splitter ? 1 : 0;
}

// Returns a payload of gompresso-bit for token bytes; nothing if it would not be smaller, or if
// they are so many that the offset of a match may have no symbol.
std::optional<std::vector<std::uint8_t>> encode_token_bytes(Bytes bytes, int level) {
    if (bytes.size() > kMaxOffset + 1) {
        return std::nullopt;
    }
    const bool is_large = bytes.size() > kMaxBlockSize;
    const int possible_level = is_large ? std::min(level, kLevelOfLargeContent) : level;
    return encode_payload(bytes, {Codec::gompresso_bit, possible_level, false});
}

}  // namespace

std::vector<std::uint8_t> write_head(const Head& head, const HeadRules& rules, int level,
                                     ClassEncoder& code) {
    Arrays arrays;
    std::vector<std::uint8_t> token_bytes;
    put_local_words(head.local_words, token_bytes, arrays[0]);
    put_local_separators(head.local_separators, token_bytes, arrays[1]);
    put_global_numbers(head, arrays);
    put_classes(head, arrays);
    put_rules(rules, arrays);
    std::array<ClassEncoder, kNumHeadArrays> codes;
    codes[kRankArray] = code;
    const std::vector<std::uint8_t> code_bytes = write_codes(rules, arrays, codes);
    code = codes[kRankArray];
    std::vector<std::uint8_t> sub_block_bytes;
    const SubBlocks sub_blocks = write_arrays(arrays, codes, sub_block_bytes);
    const SizeFrame frame = size_frame(sub_blocks);
    const auto content_size = static_cast<std::uint32_t>(token_bytes.size());
    if (auto encoded = encode_token_bytes(token_bytes, level)) {
        token_bytes = std::move(*encoded);
    }
    std::vector<std::uint8_t> payload(kHeadHeaderSize);
    store_fields(head, rules, arrays, payload.data());
    store(&payload[20], content_size);
    store(&payload[24], static_cast<std::uint32_t>(token_bytes.size()));
    store(&payload[28], frame.base);
    store(&payload[36], static_cast<std::uint16_t>(code_bytes.size()));
    payload[38] = static_cast<std::uint8_t>(frame.width);
    payload.insert(payload.end(), token_bytes.begin(), token_bytes.end());
    payload.insert(payload.end(), code_bytes.begin(), code_bytes.end());
    const std::size_t stream_start = payload.size();
    payload.resize(stream_start + kMaxSizesBytes + sub_block_bytes.size() + kBitPadding);
    BitWriter out(payload.data() + stream_start);
    put_sizes(out, sub_blocks, frame);
    for (const BitWriter& sub_block : sub_blocks) {
        out.put_all(sub_block);
    }
    payload.resize(stream_start + out.num_bytes());
    payload.resize(payload.size() + kBitPadding);
    return payload;
}

}  // namespace gompfs
