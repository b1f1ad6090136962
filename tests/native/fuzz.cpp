// Decodes damaged payloads, with and without a dictionary, and damaged blocks.
// Built with sanitizers: each buffer is on the heap with its exact size, so that access to a byte
// out of bounds ends the program.
//
// Usage: fuzz NUM_MUTATIONS. Prints how many inputs were refused.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codec/bit_codec.h"
#include "codec/block.h"
#include "codec/dictionary.h"
#include "codec/payload.h"
#include "common/little_endian.h"
#include "mutations.h"
#include "shared/format_constants.h"

namespace {

using namespace gompfs;

// With a dictionary, the codec is gompresso-bit-dictionary.
bool survives_decoding(Codec codec, const Buffer& payload, std::size_t size,
                       const SharedDictionary* dictionary = nullptr) {
    const auto out = std::make_unique<std::uint8_t[]>(size);
    const auto in = std::make_unique<std::uint8_t[]>(payload.size());
    std::copy(payload.begin(), payload.end(), in.get());
    const Bytes bytes(in.get(), payload.size());
    const MutableBytes content(out.get(), size);
    return dictionary == nullptr ? decode_payload(codec, bytes, content)
                                 : decode_bit(bytes, content, dictionary->table().get());
}

// Decodes a whole block. Its checksum lets hardly any damage reach the decoder.
bool block_survives(const Buffer& bytes) {
    const auto in = std::make_unique<std::uint8_t[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), in.get());
    const Bytes block(in.get(), bytes.size());
    const auto header = parse_block_header(block);
    if (!header) {
        return false;
    }
    const auto out = std::make_unique<std::uint8_t[]>(header->uncompressed_size);
    return decode_block(*header, block, true, {out.get(), header->uncompressed_size}) ==
           BlockStatus::ok;
}

// A payload with more sequences that need an extension than there are extensions, while literals
// are left. Mutations hardly ever produce this.
Buffer payload_without_extensions() {
    constexpr std::uint32_t kNumSequences = 1800, kNumLiterals = 40;
    Buffer payload{1, 2, 0, 0};
    for (const std::uint32_t count : {kNumSequences, 0u, kNumLiterals}) {
        append(payload, count);
    }
    for (std::uint32_t index = 0; index < kNumSequences; ++index) {
        append(payload, static_cast<std::uint16_t>(index < 4 ? 0 : 16));
    }
    for (std::uint32_t index = 0; index < kNumSequences; ++index) {
        payload.push_back(index < 4 ? 6 : kByteMatchEscape << kByteMatchShift);
    }
    payload.insert(payload.end(), kNumLiterals, 'x');
    payload.shrink_to_fit();
    return payload;
}

// A payload, its dictionary if it has one, and the size of its content.
struct Sample {
    std::unique_ptr<SharedDictionary> dictionary;
    Buffer payload;
    std::size_t size;
};

Sample make_sample(Codec codec, int round) {
    const bool has_dictionary = codec == Codec::gompresso_bit_dictionary;
    for (;;) {
        const Buffer content = make_content(round % 4);
        EncodeOptions options{has_dictionary ? Codec::gompresso_bit : codec, 1 + round % 8,
                              round % 3 != 0};
        std::unique_ptr<SharedDictionary> dictionary;
        if (has_dictionary) {  // half of the content, or unrelated bytes
            const Buffer other = make_content(round % 3);
            dictionary = std::make_unique<SharedDictionary>(
                round % 2 == 0 ? Bytes(other) : Bytes(content).first((content.size() + 1) / 2));
            options.dictionary = &dictionary->search();
        }
        if (auto payload = encode_payload(content, options)) {
            return {std::move(dictionary), std::move(*payload), content.size()};
        }
    }
}

// Returns how many damaged payloads were refused, or nothing if an undamaged one was.
std::optional<int> damage_payloads(Codec codec, int num_mutations) {
    int num_refused = 0;
    Sample sample;
    for (int round = 0; round < num_mutations; ++round) {
        if (round % 50 == 0) {
            sample = make_sample(codec, round / 50);
            if (!survives_decoding(codec, sample.payload, sample.size, sample.dictionary.get())) {
                return std::nullopt;
            }
        }
        num_refused +=
            !survives_decoding(codec, mutate(sample.payload), sample.size, sample.dictionary.get());
    }
    return num_refused;
}

}  // namespace

int main(int, char** arguments) {
    const int num_mutations = std::atoi(arguments[1]);
    if (survives_decoding(Codec::gompresso_byte, payload_without_extensions(), 65536)) {
        std::puts("a payload without its extensions was decoded");
        return 1;
    }
    for (const Codec codec :
         {Codec::gompresso_byte, Codec::gompresso_bit, Codec::gompresso_bit_dictionary}) {
        const std::optional<int> num_refused = damage_payloads(codec, num_mutations);
        if (!num_refused) {
            std::puts("an undamaged payload was refused");
            return 1;
        }
        std::printf("codec %d: %d of %d refused\n", static_cast<int>(codec), *num_refused,
                    num_mutations);
    }
    int num_refused = 0;
    Buffer block;
    for (int round = 0; round < num_mutations; ++round) {
        if (round % 50 == 0) {
            const auto codec = static_cast<Codec>(round / 50 % 3);
            block = encode_block(make_content(round / 50 % 4), {codec, 6, true});
            if (!block_survives(block)) {
                std::puts("an undamaged block was refused");
                return 1;
            }
        }
        num_refused += !block_survives(mutate(block));
    }
    std::printf("block: %d of %d refused\n", num_refused, num_mutations);
    return 0;
}
