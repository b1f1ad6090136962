// A sequence in 64 bits, as the kernels that parse blocks pass it to those that encode them:
// match_offset in the lowest 32 bits, then match_length and literal_length.
//
// CUDA and C++ both include this file.
#pragma once

namespace gompfs {

constexpr int kPackedMatchLengthShift = 32;
constexpr int kPackedLiteralLengthShift = 44;
constexpr unsigned kPackedMatchLengthMask =
    (1u << (kPackedLiteralLengthShift - kPackedMatchLengthShift)) - 1;

}  // namespace gompfs
