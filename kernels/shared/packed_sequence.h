// A sequence in 64 bits, as the kernels that parse blocks pass it to those that encode them:
// match_offset in the lowest 32 bits, then match_length (12 bits) and literal_length.
//
// CUDA and C++ both include this file.
#pragma once

#include "shared/host_device.h"

namespace gompfs {

struct UnpackedSequence {
    unsigned literal_length;
    unsigned match_length;
    unsigned match_offset;
};

constexpr int kPackedMatchLengthShift = 32;
constexpr int kPackedLiteralLengthShift = 44;

GOMPFS_FUNCTION unsigned long long pack_sequence(unsigned literal_length, unsigned match_length,
                                                 unsigned match_offset) {
    return match_offset | static_cast<unsigned long long>(match_length) << kPackedMatchLengthShift |
           static_cast<unsigned long long>(literal_length) << kPackedLiteralLengthShift;
}

GOMPFS_FUNCTION UnpackedSequence unpack_sequence(unsigned long long packed) {
    constexpr unsigned kMatchLengthMask =
        (1u << (kPackedLiteralLengthShift - kPackedMatchLengthShift)) - 1;
    return {static_cast<unsigned>(packed >> kPackedLiteralLengthShift),
            static_cast<unsigned>(packed >> kPackedMatchLengthShift) & kMatchLengthMask,
            static_cast<unsigned>(packed)};
}

}  // namespace gompfs
