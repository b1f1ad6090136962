// How many bytes an archive stores of its files that have holes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace gompfs {

// Few files have holes: of all others, an archive stores as many bytes as they are large.
class StoredSizes {
  public:
    // Files as key and stored size; keys rise, also from call to call.
    void add(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& files) {
        for (const auto& file : files) {
            if (!files_.empty() && file.first <= files_.back().first) {
                throw std::invalid_argument("files with holes are not in order");
            }
            files_.push_back(file);
        }
    }

    // The stored size of a file of that size, which it never exceeds.
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
