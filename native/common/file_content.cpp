// The hash of a content; see file_content.h.
#include "common/file_content.h"

#include <openssl/evp.h>

#include <new>

namespace gompfs {

void FileContent::set_sha256() {
    static EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    if (method == nullptr ||
        EVP_Digest(bytes.data(), bytes.size(), sha256.data(), nullptr, method, nullptr) != 1) {
        throw std::bad_alloc();
    }
}

}  // namespace gompfs
