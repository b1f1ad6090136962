// Examines a content; see file_content.h.
#include "common/file_content.h"

#include <algorithm>
#include <cstring>

namespace gompfs {

constexpr std::size_t kProbeSize = 8192;

void FileContent::examine() {
    Sha256 hash;
    hash.update(bytes);
    sha256 = hash.digest();
    const std::size_t probed = std::min(bytes.size(), kProbeSize);
    is_text = probed == 0 || std::memchr(bytes.data(), 0, probed) == nullptr;
}

}  // namespace gompfs
