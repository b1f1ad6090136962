// Decodes payloads of gompresso-bit-dictionary with the CUDA kernel on the host. Built with
// sanitizers.
//
// Usage: run_dictionary_kernel decode < REQUEST
//        run_dictionary_kernel fuzz NUM_MUTATIONS
//
// REQUEST has the size of the dictionary as the kernel reads it (GpuDictionary, u32) and its bytes,
// then for each payload its size, the size of its content (u32 each), and its bytes. For each
// payload, `decode` writes a byte (0 for a valid payload) and the content. `fuzz` decodes damaged
// payloads, and fails if the kernel and the C++ core disagree on one of them.
#include "host/cuda_on_host.h"
// Include the kernel first, so that no other header can hide a missing include of its.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "codec/bit_codec.h"
#include "codec/decode_bit_dictionary.cu"
#include "codec/dictionary.h"
#include "codec/payload.h"
#include "kernel_request.h"
#include "mutations.h"

namespace {

constexpr unsigned kNumWarps = 2;
constexpr std::size_t kPadding = 64;  // that may be read after payloads
constexpr int kMutationsPerPayload = 20;

// A dictionary as the kernel reads it, with bytes after it that may be read.
Buffer packed(const Buffer& dictionary) {
    Buffer bytes(sizeof(gompfs::GpuDictionary) + dictionary.size() + gompfs::kChunk);
    const auto size = static_cast<std::uint32_t>(dictionary.size());
    std::memcpy(bytes.data(), &size, sizeof size);
    std::copy(dictionary.begin(), dictionary.end(), bytes.begin() + sizeof(gompfs::GpuDictionary));
    return bytes;
}

// Decodes one payload in one launch, with a packed dictionary. The kernel may read the bytes after
// the output, and those after the dictionary, but never writes them.
bool decode(const Buffer& dictionary, const Buffer& payload, Buffer& content) {
    using gompfs::kChunk;
    gompfs_test::Arena arena;
    const std::uint64_t at_payload = arena.add(payload.size() + kPadding);
    const std::uint64_t at_output = arena.add(content.size() + kChunk);
    const std::uint64_t at_dictionary = arena.add(dictionary.size());
    unsigned char* const memory = arena.allocate(0xee);
    std::copy(payload.begin(), payload.end(), memory + at_payload);
    std::copy(dictionary.begin(), dictionary.end(), memory + at_dictionary);
    const unsigned long long payload_offset = at_payload, output_offset = at_output;
    const auto payload_size = static_cast<unsigned>(payload.size());
    const auto output_size = static_cast<unsigned>(content.size());
    const auto address = reinterpret_cast<unsigned long long>(memory + at_dictionary);
    unsigned char status = 255;
    unsigned next_block = 0;
    cuda_on_host::launch(
        1, kNumWarps * 32, gompfs::kBitBytesPerCta + kNumWarps * gompfs::kBitBytesPerWarp, [&] {
            decode_bit_dictionary(memory, &payload_offset, &payload_size, memory, &output_offset,
                                  &output_size, &status, &next_block, &address, 1);
        });
    const unsigned char* const output = memory + at_output;
    content.assign(output, output + content.size());
    for (std::size_t index = 0; index < kChunk; ++index) {
        if (output[content.size() + index] != 0xee) {
            std::fprintf(stderr, "byte %zu after the output was written\n", index);
            std::abort();
        }
    }
    return status == gompfs::kStatusOk;
}

int decode_all() {
    const Buffer dictionary = gompfs_test::read_bytes(gompfs_test::read_number());
    std::uint32_t sizes[2];
    while (std::fread(sizes, sizeof sizes, 1, stdin) == 1) {
        const Buffer payload = gompfs_test::read_bytes(sizes[0]);
        Buffer content(sizes[1]);
        std::putchar(decode(dictionary, payload, content) ? 0 : 1);
        std::fwrite(content.data(), 1, content.size(), stdout);
    }
    return 0;
}

// A payload, its dictionary, and the size of its content.
struct Sample {
    Buffer dictionary;
    Buffer payload;
    std::size_t size;
};

// The dictionary has some of the content and other bytes.
Sample make_sample(int round) {
    for (;;) {
        Buffer content = make_content(round % 4);
        content.resize(std::min<std::size_t>(content.size(), 2000));
        Buffer dictionary = make_content(round % 3);
        dictionary.resize(std::min<std::size_t>(dictionary.size(), 1 + below(3000)));
        dictionary.insert(dictionary.begin() + below(dictionary.size()), content.begin(),
                          content.begin() + below(content.size()));
        const gompfs::SharedDictionary shared(dictionary);
        const gompfs::EncodeOptions options{.codec = gompfs::Codec::gompresso_bit,
                                            .level = 1 + round % 8,
                                            .dependency_elimination = round % 3 != 0,
                                            .group_size_log2 = 2 + round % 4,
                                            .dictionary = &shared.search()};
        if (auto payload = gompfs::encode_payload(content, options)) {
            return {std::move(dictionary), std::move(*payload), content.size()};
        }
    }
}

bool agree(const Sample& sample, const Buffer& payload, bool& valid) {
    const auto table = gompfs::dictionary_table(sample.dictionary);
    Buffer expected(sample.size), content(sample.size);
    valid = gompfs::decode_bit(payload, expected, table.get());
    return decode(packed(sample.dictionary), payload, content) == valid &&
           (!valid || content == expected);
}

int fuzz(int num_mutations) {
    int num_refused = 0;
    std::optional<Sample> sample;
    bool valid = false;
    for (int round = 0; round < num_mutations; ++round) {
        if (round % kMutationsPerPayload == 0) {
            sample = make_sample(round / kMutationsPerPayload);
            if (!agree(*sample, sample->payload, valid) || !valid) {
                std::puts("an undamaged payload was not decoded as it should");
                return 1;
            }
        }
        if (!agree(*sample, mutate(sample->payload), valid)) {
            std::printf("round %d: the kernel disagrees\n", round);
            return 1;
        }
        num_refused += !valid;
    }
    std::printf("%d of %d refused\n", num_refused, num_mutations);
    return 0;
}

}  // namespace

int main(int, char** arguments) {
    return std::strcmp(arguments[1], "decode") == 0 ? decode_all() : fuzz(std::atoi(arguments[2]));
}
