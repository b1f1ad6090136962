// Decodes random streams with random codes, with AVX-512 and without, and compares the results.
// Built with sanitizers; each stream is on the heap with its exact size and the 8 bytes after it.
//
// Arguments: the number of cases, and the first seed. Prints how many cases were valid, and how
// many were decoded with AVX-512; ends with status 1 at the first difference.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "codec/item_rows.h"
#include "codec/item_rows_avx512.h"

namespace {

using namespace gompfs;

using Random = std::mt19937;

std::uint32_t below(Random& random, std::uint32_t limit) { return random() % limit; }

// A code of some classes, with codewords of at most 1 to 11 bits.
ClassTable random_code(Random& random) {
    const std::uint32_t num_classes = 1 + below(random, kNumClasses);
    const std::uint32_t steepness = below(random, 20);
    ClassEncoder encoder;
    int num_coded = 0;
    for (std::uint32_t each = 0; each < num_classes; ++each) {
        const int number_class = static_cast<int>(below(random, num_classes));
        const std::uint32_t times = 1 + (below(random, 2) << below(random, steepness + 1));
        for (std::uint32_t time = 0; time < std::min(times, 3000u); ++time) {
            encoder.count_class(number_class);
        }
        ++num_coded;
    }
    encoder.build(num_coded > 32 ? 8 + static_cast<int>(below(random, 4))
                                 : 6 + static_cast<int>(below(random, 6)));
    std::vector<std::uint8_t> bytes(ClassEncoder::kMaxBytes + BitWriter::kSlack);
    BitWriter out(bytes.data());
    encoder.write_lengths(out);
    BitReader in(bytes.data(), out.num_bytes());
    ClassTable code;
    if (!code.read(in)) {
        std::puts("a code cannot be read");
        std::exit(1);
    }
    return code;
}

struct Result {
    bool valid;
    std::vector<std::uint32_t> positions, items;

    bool operator==(const Result& other) const {
        return valid == other.valid &&
               (!valid || (positions == other.positions && items == other.items));
    }
};

template <typename Item, typename Decode>
Result decode(const std::uint8_t* bytes, std::uint32_t num_bits,
              std::vector<std::uint32_t> positions, std::size_t count, Decode decode_items) {
    const auto items = std::make_unique<Item[]>(count);
    const bool valid =
        decode_items(ItemStream{bytes, num_bits, positions.data()}, std::span(items.get(), count));
    return {valid, positions, {items.get(), items.get() + count}};
}

// Positions as those of sub-blocks of about equal size.
std::vector<std::uint32_t> random_positions(Random& random, std::uint32_t num_bits) {
    std::vector<std::uint32_t> positions(kNumSubBlocks);
    for (std::uint32_t lane = 0; lane < kNumSubBlocks; ++lane) {
        positions[lane] = num_bits / kNumSubBlocks * lane + below(random, num_bits / 64 + 1);
    }
    return positions;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        return 2;
    }
    const std::uint32_t num_cases = static_cast<std::uint32_t>(std::atoi(argv[1]));
    const std::uint32_t first_seed = static_cast<std::uint32_t>(std::atoi(argv[2]));
    std::uint32_t num_valid = 0, num_avx512 = 0;
    for (std::uint32_t seed = first_seed; seed < first_seed + num_cases; ++seed) {
        Random random(seed);
        const ClassTable code = random_code(random);
        const std::uint32_t size = below(random, 3000);
        const auto bytes = std::make_unique<std::uint8_t[]>(size + 8);
        for (std::uint32_t index = 0; index < size + 8; ++index) {
            bytes[index] = static_cast<std::uint8_t>(random());
        }
        const auto positions = random_positions(random, size * 8);
        const std::size_t count = below(random, size * 8 / (1 + below(random, 24)) + 2);
        const auto number = [&](auto decode_numbers) {
            return decode<std::uint32_t>(
                bytes.get(), size * 8, positions, count,
                [&](auto stream, auto items) { return decode_numbers(stream, code, items); });
        };
        const auto number_class = [&](auto decode_classes) {
            return decode<std::uint8_t>(
                bytes.get(), size * 8, positions, count,
                [&](auto stream, auto items) { return decode_classes(stream, code, items); });
        };
        const Result numbers = number(decode_numbers_portable);
        const Result classes = number_class(decode_classes_portable);
        if (number(decode_numbers) != numbers || number_class(decode_classes) != classes) {
            std::printf("the results of seed %u differ\n", seed);
            return 1;
        }
        num_valid += numbers.valid;
        num_avx512 += can_use_avx512(code);
    }
    std::printf("%u %u\n", num_valid, num_avx512);
}
