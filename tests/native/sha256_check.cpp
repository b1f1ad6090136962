// Prints SHA-256 of every prefix of the standard input, which it adds in two pieces. Ends with
// status 1 if the fastest implementation that this processor has gives another state than the
// portable one.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <span>
#include <vector>

#include "common/sha256.h"

using namespace gompfs;

int main() {
    std::vector<std::uint8_t> input(4096);
    input.resize(std::fread(input.data(), 1, input.size(), stdin));
    for (std::size_t size = 0; size <= input.size(); ++size) {
        const std::span<const std::uint8_t> prefix = std::span(input).first(size);
        const std::size_t cut = size * 7 % (size + 1);
        Sha256 hash;
        hash.update(prefix.first(cut));
        hash.update(prefix.subspan(cut));
        for (const std::uint8_t byte : hash.digest()) {
            std::printf("%02x", byte);
        }
        std::printf("\n");
        Sha256::State portable = {1, 2, 3, 4, 5, 6, 7, 8}, fastest = portable;
        compress_portable(portable, input.data(), size / Sha256::kBlockSize);
        fastest_compress()(fastest, input.data(), size / Sha256::kBlockSize);
        if (portable != fastest) {
            return 1;
        }
    }
    return 0;
}
