// Examines a content; see file_content.h.
#include "common/file_content.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace gompfs {

constexpr std::size_t kProbeSize = 8192;

void FileContent::examine() {
    static EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    if (method == nullptr ||
        EVP_Digest(bytes.data(), bytes.size(), sha256.data(), nullptr, method, nullptr) != 1) {
        throw std::bad_alloc();
    }
    const std::size_t probed = std::min(bytes.size(), kProbeSize);
    is_text = probed == 0 || std::memchr(bytes.data(), 0, probed) == nullptr;
}

}  // namespace gompfs
