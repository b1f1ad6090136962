// The checksum XXH3 (64 bits, no seed) of a block's content, computed by one warp.
//
// Content of more than 240 bytes is cut into stripes of 64 bytes, each of eight numbers of 64 bits.
// A stripe adds to eight accumulators: products of the halves of (number xor secret), and the
// number itself to the accumulator beside its own. Sums can be split, so four stripes are added at
// once: lane 8 * s + i adds number i of every fourth stripe, beginning with stripe s. After each
// KiB, the lanes with the same i add up their sums, and the accumulator is scrambled, which needs
// the whole sum. Content of up to 240 bytes is rare: one lane computes its checksum.
//
// xxHash's specification (doc/xxhash_spec.md) is the reference.
#pragma once

#include "shared/warp.cuh"

namespace gompfs {

constexpr u64 kPrime32_1 = 0x9e3779b1, kPrime32_2 = 0x85ebca77, kPrime32_3 = 0xc2b2ae3d;
constexpr u64 kPrime64_1 = 0x9e3779b185ebca87, kPrime64_2 = 0xc2b2ae3d27d4eb4f;
constexpr u64 kPrime64_3 = 0x165667b19e3779f9, kPrime64_4 = 0x85ebca77c2b2ae63;
constexpr u64 kPrime64_5 = 0x27d4eb2f165667c5;
constexpr u64 kPrimeMx1 = 0x165667919e3779f9, kPrimeMx2 = 0x9fb21c651e98df25;

constexpr u32 kNumbers = 8, kStripe = 64, kStripesAtOnce = kWarpSize / kNumbers;
constexpr u32 kStripesOfRound = 16, kRound = kStripe * kStripesOfRound;
constexpr u32 kShort = 240;

// The secret, as little-endian numbers. Offsets in it are in bytes.
__device__ constexpr u64 kSecret[24] = {
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072,
    0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
    0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
    0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8,
    0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
    0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af};

__device__ inline u64 secret_at(u32 offset) {
    const u32 word = offset / 8, shift = 8 * (offset % 8);
    return shift == 0 ? kSecret[word] : kSecret[word] >> shift | kSecret[word + 1] << (64 - shift);
}

__device__ inline u64 read_bytes(const u8* from, u32 size) {
    u64 value = 0;
    for (u32 index = 0; index < size; ++index) {
        value |= static_cast<u64>(from[index]) << (8 * index);
    }
    return value;
}

__device__ inline u64 fold_product(u64 one, u64 other) {
    return one * other ^ __umul64hi(one, other);
}

__device__ inline u64 avalanche(u64 hash) {
    hash = (hash ^ hash >> 37) * kPrimeMx1;
    return hash ^ hash >> 32;
}

__device__ inline u64 avalanche_of_xxh64(u64 hash) {
    hash = (hash ^ hash >> 33) * kPrime64_2;
    hash = (hash ^ hash >> 29) * kPrime64_3;
    return hash ^ hash >> 32;
}

__device__ inline u64 rotate_left(u64 value, u32 count) {
    return value << count | value >> (64 - count);
}

__device__ inline u64 swap_bytes(u64 value) {
    u64 swapped = 0;
    for (u32 index = 0; index < 8; ++index) {
        swapped = swapped << 8 | (value >> (8 * index) & 0xff);
    }
    return swapped;
}

// 16 bytes of content, mixed with 16 bytes of the secret.
__device__ inline u64 mix_16(const u8* from, u32 secret) {
    return fold_product(read_bytes(from, 8) ^ secret_at(secret),
                        read_bytes(from + 8, 8) ^ secret_at(secret + 8));
}

__device__ inline u64 hash_up_to_16(const u8* content, u32 size) {
    if (size > 8) {
        const u64 low = read_bytes(content, 8) ^ secret_at(24) ^ secret_at(32);
        const u64 high = read_bytes(content + size - 8, 8) ^ secret_at(40) ^ secret_at(48);
        return avalanche(size + swap_bytes(low) + high + fold_product(low, high));
    }
    if (size >= 4) {
        const u64 halves = read_bytes(content + size - 4, 4) + (read_bytes(content, 4) << 32);
        u64 hash = halves ^ secret_at(8) ^ secret_at(16);
        hash = (hash ^ rotate_left(hash, 49) ^ rotate_left(hash, 24)) * kPrimeMx2;
        hash = (hash ^ ((hash >> 35) + size)) * kPrimeMx2;
        return hash ^ hash >> 28;
    }
    if (size > 0) {
        const u32 middle = content[size / 2];
        const u32 combined =
            static_cast<u32>(content[0]) << 16 | middle << 24 | content[size - 1] | size << 8;
        const u32 flip = static_cast<u32>(secret_at(0)) ^ static_cast<u32>(secret_at(0) >> 32);
        return avalanche_of_xxh64(combined ^ flip);
    }
    return avalanche_of_xxh64(secret_at(56) ^ secret_at(64));
}

__device__ inline u64 hash_up_to_128(const u8* content, u32 size) {
    u64 hash = size * kPrime64_1;
    for (u32 pair = (size - 1) / 32 + 1; pair-- > 0;) {
        hash += mix_16(content + 16 * pair, 32 * pair);
        hash += mix_16(content + size - 16 * (pair + 1), 32 * pair + 16);
    }
    return avalanche(hash);
}

__device__ inline u64 hash_up_to_240(const u8* content, u32 size) {
    u64 hash = size * kPrime64_1;
    for (u32 index = 0; index < 8; ++index) {
        hash += mix_16(content + 16 * index, 16 * index);
    }
    hash = avalanche(hash);
    for (u32 index = 8; index < size / 16; ++index) {
        hash += mix_16(content + 16 * index, 16 * (index - 8) + 3);
    }
    return avalanche(hash + mix_16(content + size - 16, 136 - 17));
}

// The accumulator for this lane's number of a stripe, and the lane's sums since the last
// scrambling.
struct Accumulator {
    u64 value, products = 0, neighbours = 0;

    __device__ explicit Accumulator(u32 number) {
        const u64 initial[kNumbers] = {kPrime32_3, kPrime64_1, kPrime64_2, kPrime64_3,
                                       kPrime64_4, kPrime32_2, kPrime64_5, kPrime32_1};
        value = initial[number];
    }

    __device__ void add(u64 number, u64 secret) {
        const u64 keyed = number ^ secret;
        products += (keyed & 0xffffffff) * (keyed >> 32);
        neighbours += number;
    }

    __device__ void add_up(int lane) {
        u64 sum = products + __shfl_sync(kAllLanes, neighbours, lane ^ 1);
        for (int step = kNumbers; step < kWarpSize; step *= 2) {
            sum += __shfl_sync(kAllLanes, sum, lane ^ step);
        }
        value += sum;
        products = neighbours = 0;
    }

    __device__ void scramble(u32 number) {
        value = (value ^ value >> 47 ^ secret_at(128 + 8 * number)) * kPrime32_1;
    }
};

// The checksum of content of more than kShort bytes at a multiple of 8, in all lanes.
__device__ inline u64 hash_long(const u8* content, u32 size) {
    const int lane = lane_id();
    const u32 number = lane % kNumbers, first = lane / kNumbers;
    const u64* const words = reinterpret_cast<const u64*>(content);
    Accumulator sum(number);
    const u32 num_stripes = (size - 1) / kStripe;  // all but the last 1 to 64 bytes
    for (u32 round = 0; round < num_stripes; round += kStripesOfRound) {
        for (u32 stripe = first; stripe < kStripesOfRound; stripe += kStripesAtOnce) {
            if (round + stripe < num_stripes) {
                sum.add(words[(round + stripe) * kNumbers + number], kSecret[stripe + number]);
            }
        }
        sum.add_up(lane);
        if (round + kStripesOfRound <= (size - 1) / kRound * kStripesOfRound) {
            sum.scramble(number);
        }
    }
    if (first == 0) {
        sum.add(read_bytes(content + size - kStripe + 8 * number, 8), secret_at(121 + 8 * number));
    }
    sum.add_up(lane);
    u64 hash = size * kPrime64_1;
    for (u32 pair = 0; pair < kNumbers; pair += 2) {
        const u64 one = __shfl_sync(kAllLanes, sum.value, static_cast<int>(pair));
        const u64 other = __shfl_sync(kAllLanes, sum.value, static_cast<int>(pair + 1));
        hash += fold_product(one ^ secret_at(11 + 8 * pair), other ^ secret_at(19 + 8 * pair));
    }
    return avalanche(hash);
}

// The checksum of content at a multiple of 8, in all lanes.
__device__ inline u64 hash_content(const u8* content, u32 size) {
    if (size > kShort) {
        return hash_long(content, size);
    }
    return size <= 16    ? hash_up_to_16(content, size)
           : size <= 128 ? hash_up_to_128(content, size)
                         : hash_up_to_240(content, size);
}

}  // namespace gompfs
