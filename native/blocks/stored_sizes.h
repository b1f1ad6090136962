// The number of bytes that an archive stores of files with holes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace gompfs {

// Few files have holes, so only those are listed: of any other file the archive stores its whole
// size.
class StoredSizes {
  public:
    // Adds files as pairs of key and stored size. Keys must ascend, also from call to call.
    void add(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& files) {
        for (const auto& file : files) {
            if (!files_.empty() && file.first <= files_.back().first) {
                throw std::invalid_argument("files with holes are not in order");
            }
            files_.push_back(file);
        }
    }

    // The stored size of a file, which is never above `size`.
    std::uint64_t of(std::uint64_t key, std::uint64_t size) const {
        const auto found = std::lower_bound(
            files_.begin(), files_.end(), key,
            [](const auto& file, std::uint64_t wanted) { return file.first < wanted; });
        return found == files_.end() || found->first != key ? size : std::min(found->second, size);
    }

    std::size_t size() const { return files_.size(); }
    std::size_t num_bytes() const { return files_.capacity() * sizeof files_.front(); }

  private:
    std::vector<std::pair<std::uint64_t, std::uint64_t>> files_;
};

}  // namespace gompfs
