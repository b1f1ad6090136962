// SHA-256 (FIPS 180-4) of bytes that come in pieces. Uses the SHA instructions of x86-64 and ARM
// processors that have them. An implementation of our own, so that gompfs needs no library for this
// one function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gompfs {

class Sha256 {
  public:
    using Digest = std::array<std::uint8_t, 32>;
    using State = std::array<std::uint32_t, 8>;
    static constexpr std::size_t kBlockSize = 64;

    void update(std::span<const std::uint8_t> bytes);
    // Can be called once.
    Digest digest();

  private:
    State state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::uint8_t, kBlockSize> rest_;  // bytes of a block that is not complete
    std::uint64_t size_ = 0;                     // of all bytes so far
};

// Adds whole blocks to a state. The first works on all processors; the second returns the fastest
// that this processor can execute.
using CompressBlocks = void(Sha256::State& state, const std::uint8_t* bytes,
                            std::size_t num_blocks);
CompressBlocks compress_portable;
CompressBlocks* fastest_compress();

}  // namespace gompfs
