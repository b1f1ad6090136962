// Decodes payloads with the CUDA kernels on the host. Built with sanitizers.
//
// Usage: run_kernels decode CODEC < PAYLOADS
//        run_kernels rounds CODEC < PAYLOADS
//        run_kernels fuzz NUM_MUTATIONS
//
// PAYLOADS contains, for each payload, its size and the size of its content (u32 each), then its
// bytes. For each payload, `decode` writes a byte (0 for a valid payload) and the content. `rounds`
// writes a line with the counters of multi-round resolution. `fuzz` decodes damaged payloads, and
// fails if the kernels and the C++ core disagree on one of them.
#include "host/cuda_on_host.h"
// Include the kernels first, so that no other header can hide a missing include of theirs.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "bit_strategies.cu"
#include "byte_strategies.cu"
#include "codec/decode_bit.cu"
#include "codec/decode_byte.cu"
#include "codec/payload.h"
#include "match_rounds.cu"
#include "mutations.h"

namespace {

using Buffer = std::vector<std::uint8_t>;
constexpr unsigned kNumWarps = 2;
constexpr int kMutationsPerPayload = 20;
constexpr std::size_t kPayloadPadding = 64;
// No chain of a block is longer than the block. Each round halves it, and one finds nothing to do.
constexpr unsigned kMaxJumps = 21;

struct AlignedBytes {
    explicit AlignedBytes(std::size_t size)
        : bytes(static_cast<unsigned char*>(std::aligned_alloc(128, (size + 127) / 128 * 128))) {}
    ~AlignedBytes() { std::free(bytes); }
    AlignedBytes(const AlignedBytes&) = delete;
    AlignedBytes& operator=(const AlignedBytes&) = delete;
    unsigned char* bytes;
};

// The kernels of the engine, then the strategies of the paper (Gompresso, ICPP 2016): SC, MRR and
// DE, each by words and by bytes, MRR with a kernel for each round, and pointer jumping.
enum Kernel {
    kEngine,
    kSequential,
    kSequentialBytes,
    kMultiRound,
    kMultiRoundBytes,
    kElimination,
    kEliminationBytes,
    kListing,
    kJumping,
};
constexpr Kernel kStrategies[] = {kSequential,  kSequentialBytes,  kMultiRound, kMultiRoundBytes,
                                  kElimination, kEliminationBytes, kListing,    kJumping};

using Counters = std::array<unsigned long long, gompfs::kNumCounters>;

// Aborts if bytes before or after an output were written.
void check_margins(const unsigned char* bytes, std::size_t size) {
    for (std::size_t index = 0; index < gompfs::kChunk + size + gompfs::kChunk; ++index) {
        const bool inside = index >= gompfs::kChunk && index < gompfs::kChunk + size;
        if (!inside && bytes[index] != 0xee) {
            std::fprintf(stderr, "byte %zu of the output of %zu bytes was written\n",
                         index - gompfs::kChunk, size);
            std::abort();
        }
    }
}

// Copies the matches that are listed for one block. Returns the number of rounds.
unsigned resolve_rounds(unsigned char* output, unsigned long long output_offset,
                        std::vector<unsigned long long>& lists, unsigned num_listed) {
    std::vector<unsigned long long> others(lists.size());
    unsigned num_rounds = 0;
    for (; num_listed != 0; ++num_rounds) {
        unsigned next_block = 0, num_others = 0;
        unsigned long long num_waiting = 0;
        cuda_on_host::launch(1, kNumWarps * 32, 0, [&] {
            resolve_round(output, &output_offset, &next_block, 1, lists.data(), &num_listed,
                          others.data(), &num_others, &num_waiting);
        });
        if (num_others >= num_listed || num_waiting != num_others) {
            std::abort();
        }
        num_listed = num_others;
        lists.swap(others);
    }
    return num_rounds;
}

// Decodes one payload in one launch. The bytes before and after the output must not change.
bool decode(gompfs::Codec codec, const Buffer& payload, Buffer& content, Kernel kernel,
            Counters& counters) {
    const AlignedBytes in(payload.size() + kPayloadPadding);
    std::memset(in.bytes, 0xff, payload.size() + kPayloadPadding);
    std::copy(payload.begin(), payload.end(), in.bytes);
    const std::size_t size = content.size();
    const std::size_t out_size = gompfs::kChunk + size + gompfs::kChunk;
    const AlignedBytes out(out_size);
    std::memset(out.bytes, 0xee, out_size);
    const unsigned long long payload_offset = 0, output_offset = gompfs::kChunk;
    const auto payload_size = static_cast<unsigned>(payload.size());
    const auto output_size = static_cast<unsigned>(size);
    unsigned char status = 255;
    unsigned next_block = 0;
    counters = {};
    std::vector<unsigned> parents(kernel == kJumping ? output_offset + size : 0);
    // Exactly as large as match_list.cuh says, so that AddressSanitizer sees what goes beyond.
    std::vector<unsigned long long> lists(kernel == kListing ? (output_offset + size) / 2 : 0);
    unsigned num_listed = 0;
    const bool bit = codec == gompfs::Codec::gompresso_bit;
    const std::size_t strategy_bytes =
        kernel == kEngine ? 0 : kNumWarps * gompfs::kStrategyBytesPerWarp;
    const std::size_t codec_bytes =
        bit                 ? gompfs::kBitBytesPerCta + kNumWarps * gompfs::kBitBytesPerWarp
        : kernel == kEngine ? kNumWarps * gompfs::kByteBytesPerWarp
                            : 0;
    cuda_on_host::launch(1, kNumWarps * 32, strategy_bytes + codec_bytes, [&] {
        if (kernel == kEngine) {
            (bit ? decode_bit : decode_byte)(in.bytes, &payload_offset, &payload_size, out.bytes,
                                             &output_offset, &output_size, &status, &next_block, 1);
            return;
        }
        if (kernel == kJumping) {
            (bit ? decode_bit_jump : decode_byte_jump)(
                in.bytes, &payload_offset, &payload_size, out.bytes, &output_offset, &output_size,
                &status, &next_block, 1, counters.data(), parents.data());
            return;
        }
        if (kernel == kListing) {
            (bit ? decode_bit_list : decode_byte_list)(
                in.bytes, &payload_offset, &payload_size, out.bytes, &output_offset, &output_size,
                &status, &next_block, 1, lists.data(), &num_listed);
            return;
        }
        constexpr decltype(&decode_bit_sc) kKernels[][6] = {
            {decode_byte_sc, decode_byte_sc_bytes, decode_byte_mrr, decode_byte_mrr_bytes,
             decode_byte_de, decode_byte_de_bytes},
            {decode_bit_sc, decode_bit_sc_bytes, decode_bit_mrr, decode_bit_mrr_bytes,
             decode_bit_de, decode_bit_de_bytes}};
        kKernels[bit][kernel - kSequential](in.bytes, &payload_offset, &payload_size, out.bytes,
                                            &output_offset, &output_size, &status, &next_block, 1,
                                            counters.data());
    });
    if (kernel == kListing) {
        counters[0] = 1;
        counters[1] = resolve_rounds(out.bytes, output_offset, lists, num_listed);
    }
    check_margins(out.bytes, size);
    std::copy_n(out.bytes + gompfs::kChunk, size, content.begin());
    return status == gompfs::kStatusOk;
}

bool decode(gompfs::Codec codec, const Buffer& payload, Buffer& content, Kernel kernel) {
    Counters counters;
    return decode(codec, payload, content, kernel, counters);
}

// Calls take(payload, content) for each payload of the input; content has the given size.
template <class Take>
int for_each_payload(Take&& take) {
    std::uint32_t sizes[2];
    while (std::fread(sizes, sizeof sizes, 1, stdin) == 1) {
        Buffer payload(sizes[0]), content(sizes[1]);
        if (std::fread(payload.data(), 1, payload.size(), stdin) != payload.size()) {
            return 2;
        }
        take(payload, content);
    }
    return 0;
}

int decode_all(gompfs::Codec codec, Kernel kernel) {
    return for_each_payload([&](const Buffer& payload, Buffer& content) {
        std::putchar(decode(codec, payload, content, kernel) ? 0 : 1);
        std::fwrite(content.data(), 1, content.size(), stdout);
    });
}

int count_rounds(gompfs::Codec codec) {
    return for_each_payload([&](const Buffer& payload, Buffer& content) {
        Counters counters;
        if (!decode(codec, payload, content, kMultiRound, counters)) {
            std::abort();
        }
        for (const unsigned long long counter : counters) {
            std::printf("%llu ", counter);
        }
        std::putchar('\n');
    });
}

std::uint32_t number_at(const Buffer& payload, std::size_t place) {
    std::uint32_t number;
    std::memcpy(&number, payload.data() + place, sizeof number);
    return number;
}

// Returns whether the counters of a strategy agree with the header of the payload.
bool counted_right(gompfs::Codec codec, const Buffer& payload, std::size_t size, Kernel kernel,
                   const Counters& counters) {
    if (kernel == kListing) {
        return counters[0] == 1 && counters[1] <= size;
    }
    if (kernel == kJumping) {
        return counters[0] == 1 && counters[1] >= 1 && counters[1] <= kMaxJumps;
    }
    const std::size_t literals_at = codec == gompfs::Codec::gompresso_bit ? 8 : 12;
    const unsigned long long rows = (number_at(payload, 4) + 31) / 32;
    const bool is_sequential = kernel == kSequential || kernel == kSequentialBytes;
    const bool is_multi_round = kernel == kMultiRound || kernel == kMultiRoundBytes;
    const unsigned long long rounds_of_a_row = is_sequential ? 32 : 32 >> payload[1];
    const unsigned long long bytes = std::accumulate(counters.begin() + 2, counters.end(), 0ull);
    return counters[0] == rows && bytes == size - number_at(payload, literals_at) &&
           (is_multi_round ? counters[1] <= 32 * rows : counters[1] == rounds_of_a_row * rows);
}

// Checks the strategies of the paper on an undamaged payload of the encoder.
bool strategies_agree(gompfs::Codec codec, const Buffer& payload, const Buffer& expected) {
    const bool promised = (payload[0] & gompfs::kFlagDependencyElimination) != 0;
    for (const Kernel kernel : kStrategies) {
        Buffer content(expected.size());
        Counters counters;
        const bool needs_promise = kernel == kElimination || kernel == kEliminationBytes;
        if ((!needs_promise || promised) &&
            (!decode(codec, payload, content, kernel, counters) || content != expected ||
             !counted_right(codec, payload, content.size(), kernel, counters))) {
            return false;
        }
    }
    return true;
}

bool agree(gompfs::Codec codec, const Buffer& payload, std::size_t size, bool& valid) {
    Buffer expected(size), content(size);
    valid = gompfs::decode_payload(codec, payload, expected);
    return decode(codec, payload, content, kEngine) == valid && (!valid || content == expected);
}

int fuzz(int num_mutations) {
    for (const gompfs::Codec codec :
         {gompfs::Codec::gompresso_byte, gompfs::Codec::gompresso_bit}) {
        int num_refused = 0;
        std::optional<Buffer> payload;
        std::size_t size = 0;
        bool valid = false;
        for (int round = 0; round < num_mutations; ++round) {
            if (round % kMutationsPerPayload == 0) {
                do {
                    Buffer content = make_content(round / kMutationsPerPayload % 4);
                    content.resize(std::min<std::size_t>(content.size(), 2000));
                    size = content.size();
                    payload = gompfs::encode_payload(
                        content, {codec, 1 + round / kMutationsPerPayload % gompfs::kMaxLevel,
                                  round / kMutationsPerPayload % 3 != 0,
                                  2 + round / kMutationsPerPayload % 4});
                } while (!payload);
                Buffer content(size);
                if (!agree(codec, *payload, size, valid) || !valid ||
                    !gompfs::decode_payload(codec, *payload, content) ||
                    !strategies_agree(codec, *payload, content)) {
                    std::puts("an undamaged payload was not decoded as it should");
                    return 1;
                }
            }
            if (!agree(codec, mutate(*payload), size, valid)) {
                std::printf("codec %d, round %d: the kernel disagrees\n", static_cast<int>(codec),
                            round);
                return 1;
            }
            num_refused += !valid;
        }
        std::printf("codec %d: %d of %d refused\n", static_cast<int>(codec), num_refused,
                    num_mutations);
    }
    return 0;
}

}  // namespace

int main(int, char** arguments) {
    const int number = std::atoi(arguments[2]);
    if (std::strcmp(arguments[1], "decode") == 0) {
        return decode_all(static_cast<gompfs::Codec>(number), kEngine);
    }
    if (std::strcmp(arguments[1], "rounds") == 0) {
        return count_rounds(static_cast<gompfs::Codec>(number));
    }
    return fuzz(number);
}
