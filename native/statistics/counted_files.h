// The files whose words are counted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace gompfs {

// A set of inode numbers.
class CountedFiles {
  public:
    CountedFiles() = default;  // all files
    explicit CountedFiles(std::vector<std::uint64_t> inos) : inos_(std::move(inos)) {
        std::sort(inos_->begin(), inos_->end());
    }
    bool contains(std::uint64_t ino) const {
        return !inos_ || std::binary_search(inos_->begin(), inos_->end(), ino);
    }
    bool contain_any(const std::vector<std::uint64_t>& inos) const {
        return !inos_ || std::any_of(inos.begin(), inos.end(),
                                     [this](std::uint64_t ino) { return contains(ino); });
    }

  private:
    std::optional<std::vector<std::uint64_t>> inos_;
};

}  // namespace gompfs
