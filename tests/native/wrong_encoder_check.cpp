// Builds parts with an encoder of blocks that is wrong: its blocks decode to nothing. Prints what
// the parts became. This file takes the place of native/codec/tadoc_encoder.cpp.
#include <atomic>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "codec/block.h"
#include "codec/parse/dictionary_search.h"
#include "codec/tadoc_codec.h"
#include "text/parts_builder.h"

namespace gompfs {

std::vector<std::uint8_t> encode_tadoc(std::span<const std::uint32_t>, std::uint16_t,
                                       const ClassEncoder&) {
    return std::vector<std::uint8_t>(30);
}

}  // namespace gompfs

namespace {

using namespace gompfs;

std::string text_of(const EncodedPart& part) {
    std::string text;
    for (const std::vector<std::uint8_t>& block : part.blocks) {
        const BlockHeader header = *parse_block_header(block);
        std::vector<std::uint8_t> content(header.uncompressed_size);
        if (decode_block(header, block, true, content) == BlockStatus::ok) {
            text.append(content.begin(), content.end());
        }
    }
    return text;
}

void build_parts() {
    PartsBuilder builder(Tokenizer(WordRule::identifiers, {}),
                         {1 << 14, 1 << 16, 1 << 16, 2, "/tmp"});
    std::string text;
    for (int number = 0; text.size() < 400'000; ++number) {
        text += "word" + std::to_string(number * 7919 % 1000) + " and another\n";
    }
    builder.add_bytes(text);
    builder.end_file();
    builder.finish();
    std::size_t num_parts = 0, num_heads = 0;
    std::string decoded;
    for (auto parts = builder.next_parts(); !parts.empty(); parts = builder.next_parts()) {
        for (const EncodedPart& part : parts) {
            ++num_parts;
            num_heads += !part.head.empty();
            decoded += text_of(part);
        }
    }
    std::printf("%zu heads, all parts wrong: %d, text: %d\n", num_heads,
                builder.num_wrong() == num_parts, decoded == text);
}

// A block that needs a dictionary does not decode without it.
void encode_wrong_block() {
    const std::string text(1000, 'a');
    const Bytes content(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    const DictionarySearch dictionary(content);
    EncodeOptions options{Codec::gompresso_bit, 6, false};
    options.dictionary = &dictionary;
    std::atomic<std::uint32_t> num_wrong = 0;
    const std::vector<std::uint8_t> block = encode_checked_block(content, options, num_wrong);
    std::printf("%u wrong, stored: %d\n", num_wrong.load(),
                parse_block_header(block)->codec == Codec::stored);
}

}  // namespace

int main() {
    build_parts();
    encode_wrong_block();
}
