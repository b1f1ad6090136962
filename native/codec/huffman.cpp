// Builds length-limited Huffman codes, and writes and reads code lengths; see huffman.h.
//
// limited_code_lengths first builds an ordinary Huffman code from sorted counts with two queues, in
// linear time. Only if that is too deep does it run package-merge (Larmore and Hirschberg 1990),
// which finds the optimal code under the limit. Code lengths are stored as in deflate: run-length
// symbols under a small code, whose own lengths are stored as plain 3-bit numbers.
#include "codec/huffman.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "shared/format_constants.h"

namespace gompfs {
namespace {

struct LengthSymbol {
    std::uint8_t symbol;
    std::uint8_t extra;
    std::uint8_t num_extra_bits;
};

// The depth of each leaf of the Huffman tree over sorted positive weights (two-queue construction).
std::vector<int> tree_depths(const std::vector<std::uint32_t>& weights) {
    const std::size_t num_leaves = weights.size();
    std::vector<std::uint64_t> weight(weights.begin(), weights.end());
    std::vector<std::size_t> parent(2 * num_leaves - 1);
    std::size_t leaf = 0;
    std::size_t inner = num_leaves;
    auto take_lightest = [&] {
        const bool take_leaf =
            leaf < num_leaves && (inner >= weight.size() || weight[leaf] <= weight[inner]);
        return take_leaf ? leaf++ : inner++;
    };
    while (weight.size() < 2 * num_leaves - 1) {
        const std::size_t left = take_lightest();
        const std::size_t right = take_lightest();
        parent[left] = parent[right] = weight.size();
        weight.push_back(weight[left] + weight[right]);
    }
    std::vector<int> depth(2 * num_leaves - 1, 0);
    for (std::size_t node = 2 * num_leaves - 2; node-- > 0;) {
        depth[node] = depth[parent[node]] + 1;
    }
    depth.resize(num_leaves);
    return depth;
}

// The depths of the best tree not deeper than max_bits (package-merge). A level is the sorted list
// of all leaves and of the pairs of neighbouring items of the level below. Only the first 2 *
// num_leaves - 2 items of the top level count, and on each lower level the items whose pairs count.
// The depth of a leaf is the number of levels on which it counts.
void limited_tree_depths(const std::vector<std::uint32_t>& weights, int max_bits,
                         std::vector<int>& depths) {
    constexpr std::uint32_t kHeaviest = ~0u;
    const std::size_t num_leaves = weights.size();
    const std::size_t num_items = 2 * num_leaves - 2;
    std::array<std::uint32_t, kMaxAlphabet + 1> leaves;
    std::array<std::uint32_t, kMaxAlphabet + 1> pairs;
    std::array<std::uint32_t, 2 * kMaxAlphabet> items;
    std::vector<std::uint8_t> is_leaf(num_items * max_bits);
    *std::copy(weights.begin(), weights.end(), leaves.begin()) = kHeaviest;
    pairs.fill(kHeaviest);
    for (int level = 0; level < max_bits; ++level) {
        std::size_t leaf = 0;
        std::size_t pair = 0;
        for (std::size_t index = 0; index < num_items; ++index) {
            const bool takes_leaf = leaves[leaf] <= pairs[pair];
            items[index] = takes_leaf ? leaves[leaf] : pairs[pair];
            is_leaf[level * num_items + index] = takes_leaf;
            leaf += takes_leaf & (leaf < num_leaves);
            pair += !takes_leaf;
        }
        for (std::size_t index = 0; index + 1 < num_leaves; ++index) {
            const std::uint32_t second = items[2 * index + 1];
            pairs[index] = second == kHeaviest ? kHeaviest : items[2 * index] + second;
        }
    }
    std::fill(depths.begin(), depths.end(), 0);
    std::size_t num_taken = num_items;
    for (int level = max_bits; level-- > 0;) {
        const auto first = is_leaf.begin() + level * num_items;
        const auto num_leaves_taken =
            static_cast<std::size_t>(std::accumulate(first, first + num_taken, 0));
        for (std::size_t leaf = 0; leaf < num_leaves_taken; ++leaf) {
            ++depths[leaf];
        }
        num_taken = 2 * (num_taken - num_leaves_taken);
    }
}

std::uint16_t reversed(std::uint32_t codeword, int num_bits) {
    codeword = (codeword & 0x5555) << 1 | (codeword >> 1 & 0x5555);
    codeword = (codeword & 0x3333) << 2 | (codeword >> 2 & 0x3333);
    codeword = (codeword & 0x0f0f) << 4 | (codeword >> 4 & 0x0f0f);
    codeword = (codeword & 0x00ff) << 8 | (codeword >> 8 & 0x00ff);
    return static_cast<std::uint16_t>(codeword >> (16 - num_bits));
}

std::vector<LengthSymbol> run_length_symbols(std::span<const std::uint8_t> lengths) {
    std::vector<LengthSymbol> symbols;
    for (std::size_t index = 0; index < lengths.size();) {
        std::size_t run = 1;
        while (index + run < lengths.size() && lengths[index + run] == lengths[index]) {
            ++run;
        }
        const bool zeros = lengths[index] == 0;
        index += run;
        if (!zeros) {
            symbols.push_back({lengths[index - 1], 0, 0});
            --run;
        }
        while (run >= 3) {
            const std::size_t limit = zeros ? 138 : 6;
            const std::size_t piece = std::min(run, limit);
            if (!zeros) {
                symbols.push_back({kLengthSymbolRepeat, static_cast<std::uint8_t>(piece - 3), 2});
            } else if (piece <= 10) {
                symbols.push_back({kLengthSymbolZeros, static_cast<std::uint8_t>(piece - 3), 3});
            } else {
                symbols.push_back(
                    {kLengthSymbolManyZeros, static_cast<std::uint8_t>(piece - 11), 7});
            }
            run -= piece;
        }
        symbols.insert(symbols.end(), run, LengthSymbol{lengths[index - 1], 0, 0});
    }
    return symbols;
}

}  // namespace

void limited_code_lengths(std::span<const std::uint32_t> counts, int max_bits,
                          std::uint8_t* lengths) {
    std::vector<std::uint16_t> symbols;
    for (std::size_t symbol = 0; symbol < counts.size(); ++symbol) {
        lengths[symbol] = 0;
        if (counts[symbol] != 0) {
            symbols.push_back(static_cast<std::uint16_t>(symbol));
        }
    }
    if (symbols.size() <= 1) {
        for (const std::uint16_t symbol : symbols) {
            lengths[symbol] = 1;
        }
        return;
    }
    std::stable_sort(symbols.begin(), symbols.end(), [&](std::uint16_t left, std::uint16_t right) {
        return counts[left] < counts[right];
    });
    std::vector<std::uint32_t> weights;
    for (const std::uint16_t symbol : symbols) {
        weights.push_back(counts[symbol]);
    }
    std::vector<int> depths = tree_depths(weights);
    if (depths.front() > max_bits) {
        limited_tree_depths(weights, max_bits, depths);
    }
    for (std::size_t index = 0; index < symbols.size(); ++index) {
        lengths[symbols[index]] = static_cast<std::uint8_t>(depths[index]);
    }
}

void canonical_codewords(std::span<const std::uint8_t> lengths, std::uint16_t* codewords) {
    std::array<std::uint32_t, 17> num_of_length{};
    for (const std::uint8_t length : lengths) {
        ++num_of_length[length];
    }
    num_of_length[0] = 0;
    std::array<std::uint32_t, 17> next{};
    for (int length = 1; length <= 16; ++length) {
        next[length] = (next[length - 1] + num_of_length[length - 1]) << 1;
    }
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
        const int length = lengths[symbol];
        codewords[symbol] = length == 0 ? 0 : reversed(next[length]++, length);
    }
}

SortedSymbols sort_by_codeword(std::span<const std::uint8_t> lengths, int max_bits) {
    SortedSymbols sorted;
    std::array<std::uint32_t, 256> num_of_length{};
    for (const std::uint8_t length : lengths) {
        ++num_of_length[length];
    }
    std::array<std::uint32_t, 256> next;
    std::uint64_t sum = 0;
    std::uint32_t count = 0;
    for (int length = 1; length <= max_bits; ++length) {
        next[length] = count;
        count += num_of_length[length];
        sum += std::uint64_t{num_of_length[length]} << (max_bits - length);
    }
    sorted.count = count;
    sorted.decodable = num_of_length[0] + count == lengths.size() &&
                       (count == 0 || (count == 1 && num_of_length[1] == 1) ||
                        sum == std::uint64_t{1} << max_bits);
    if (sorted.decodable) {
        // Unused symbols are written too, to a slot that the next symbol overwrites: this avoids a
        // branch that is hard to predict.
        std::uint32_t unused = 0;
        for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
            const bool used = lengths[symbol] != 0;
            std::uint32_t& index = used ? next[lengths[symbol]] : unused;
            sorted.symbols[used ? index : count] = static_cast<std::uint16_t>(symbol);
            index += used;
        }
    }
    return sorted;
}

std::vector<std::uint8_t> write_code_lengths(std::span<const std::uint8_t> lengths) {
    const std::vector<LengthSymbol> symbols = run_length_symbols(lengths);
    std::array<std::uint32_t, kNumLengthSymbols> counts{};
    for (const LengthSymbol& symbol : symbols) {
        ++counts[symbol.symbol];
    }
    std::array<std::uint8_t, kNumLengthSymbols> code_lengths{};
    std::array<std::uint16_t, kNumLengthSymbols> codewords{};
    limited_code_lengths(counts, kMaxLengthBits, code_lengths.data());
    canonical_codewords(code_lengths, codewords.data());
    std::vector<std::uint8_t> bytes(kNumLengthSymbols + 2 * symbols.size() + BitWriter::kSlack);
    BitWriter bits(bytes.data());
    for (const std::uint8_t length : code_lengths) {
        bits.put(length, kLengthFieldBits);
    }
    for (const LengthSymbol& symbol : symbols) {
        bits.put(codewords[symbol.symbol], code_lengths[symbol.symbol]);
        bits.put(symbol.extra, symbol.num_extra_bits);
    }
    bytes.resize(bits.num_bytes());
    return bytes;
}

std::size_t read_code_lengths(std::span<const std::uint8_t> bytes,
                              std::span<std::uint8_t> lengths) {
    BitReader bits(bytes.data(), bytes.size());
    std::array<std::uint8_t, kNumLengthSymbols> code_lengths;
    for (std::uint8_t& length : code_lengths) {
        length = static_cast<std::uint8_t>(bits.take(kLengthFieldBits));
    }
    std::array<std::uint8_t, 1 << kMaxLengthBits> table;
    if (!build_decode_table(code_lengths, table,
                            [](std::size_t symbol) { return static_cast<std::uint8_t>(symbol); })) {
        return 0;
    }
    for (std::size_t index = 0; index < lengths.size();) {
        const std::uint8_t symbol = table[bits.take(kMaxLengthBits)];
        if (code_lengths[symbol] == 0) {
            return 0;
        }
        bits.give_back(kMaxLengthBits - code_lengths[symbol]);
        std::size_t run = 1;
        std::uint8_t value = symbol;
        if (symbol == kLengthSymbolRepeat) {
            run = 3 + bits.take(2);
            value = index == 0 ? 0 : lengths[index - 1];
        } else if (symbol == kLengthSymbolZeros) {
            run = 3 + bits.take(3);
            value = 0;
        } else if (symbol == kLengthSymbolManyZeros) {
            run = 11 + bits.take(7);
            value = 0;
        }
        if (run > lengths.size() - index || bits.overrun()) {
            return 0;
        }
        std::fill_n(lengths.begin() + index, run, value);
        index += run;
    }
    return bits.num_bytes_used();
}

}  // namespace gompfs
