// SHA-256; see sha256.h.
#include "common/sha256.h"

#include <openssl/evp.h>

#include <new>

namespace gompfs {
namespace {

// OpenSSL fails only if it has no memory, or no SHA-256, which every build of it has.
void check(int result) {
    if (result != 1) {
        throw std::bad_alloc();
    }
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* state) const { EVP_MD_CTX_free(state); }

Sha256::Sha256() : state_(EVP_MD_CTX_new()) {
    static EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    check(state_ != nullptr && method != nullptr ? 1 : 0);
    check(EVP_DigestInit_ex(state_.get(), method, nullptr));
}

void Sha256::update(std::span<const std::uint8_t> bytes) {
    check(EVP_DigestUpdate(state_.get(), bytes.data(), bytes.size()));
}

Sha256::Digest Sha256::digest() {
    Digest digest;
    check(EVP_DigestFinal_ex(state_.get(), digest.data(), nullptr));
    return digest;
}

}  // namespace gompfs
