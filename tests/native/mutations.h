// Random contents of several kinds, and random damage to coded bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using Buffer = std::vector<std::uint8_t>;

inline std::mt19937 random_bits(7);

inline std::uint32_t below(std::size_t limit) {
    return static_cast<std::uint32_t>(random_bits() % limit);
}

inline Buffer make_content(int kind) {
    Buffer content;
    const std::size_t size = 1 + below(kind == 0 ? 65536 : 3000);
    std::vector<Buffer> words(2 + below(30));
    for (Buffer& word : words) {
        word.resize(1 + below(10));
        for (std::uint8_t& byte : word) {
            byte = static_cast<std::uint8_t>(kind == 1 ? below(256) : 'a' + below(20));
        }
    }
    while (content.size() < size) {
        const Buffer& word = words[below(words.size())];
        content.insert(content.end(), word.begin(), word.end());
        content.insert(content.end(), kind == 2 ? below(600) : 1, ' ');
    }
    content.resize(size);
    return content;
}

inline Buffer mutate(Buffer bytes) {
    for (std::uint32_t round = 0; round < 1 + below(4) && !bytes.empty(); ++round) {
        const std::size_t place =
            below(2) != 0 ? below(std::min<std::size_t>(bytes.size(), 200)) : below(bytes.size());
        switch (below(6)) {
            case 0:
                bytes.resize(place);
                break;
            case 1:
                bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(place),
                             static_cast<std::uint8_t>(below(256)));
                break;
            case 2:
                bytes[place] = 255;
                break;
            default:
                bytes[place] ^= static_cast<std::uint8_t>(1u << below(8));
        }
    }
    bytes.shrink_to_fit();
    return bytes;
}
