// SHA-256 of bytes that come in pieces, computed by OpenSSL.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

struct evp_md_ctx_st;

namespace gompfs {

class Sha256 {
  public:
    using Digest = std::array<std::uint8_t, 32>;

    // All methods throw std::bad_alloc.
    Sha256();
    void update(std::span<const std::uint8_t> bytes);
    // Can be called once.
    Digest digest();

  private:
    struct Free {
        void operator()(evp_md_ctx_st* state) const;
    };
    std::unique_ptr<evp_md_ctx_st, Free> state_;
};

}  // namespace gompfs
