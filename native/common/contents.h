// The contents of several files, one after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/file_content.h"

namespace gompfs {

class Contents {
  public:
    void append(std::shared_ptr<const FileContent> content) {
        ends_.push_back(size() + content->bytes.size());
        files_.push_back(std::move(content));
    }

    const std::vector<std::shared_ptr<const FileContent>>& files() const { return files_; }
    std::uint64_t size() const { return ends_.empty() ? 0 : ends_.back(); }

    // Copies the bytes from `offset` on. There must be as many as `out` has.
    void copy(std::uint64_t offset, std::span<std::uint8_t> out) const {
        auto index = std::upper_bound(ends_.begin(), ends_.end(), offset) - ends_.begin();
        while (!out.empty()) {
            const auto& bytes = files_[index]->bytes;
            const std::uint64_t from = offset - (ends_[index] - bytes.size());
            const std::size_t count = std::min<std::uint64_t>(bytes.size() - from, out.size());
            std::copy_n(bytes.data() + from, count, out.data());
            out = out.subspan(count);
            offset += count;
            ++index;
        }
    }

  private:
    std::vector<std::shared_ptr<const FileContent>> files_;
    std::vector<std::uint64_t> ends_;  // offset of the end of each file
};

}  // namespace gompfs
