// The contents of several files, or slices of them, one after another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/file_content.h"

namespace gompfs {

class Contents {
  public:
    // Bytes of a content.
    struct Slice {
        std::shared_ptr<const FileContent> content;
        std::size_t begin, size;

        std::span<const std::uint8_t> bytes() const {
            return std::span(content->bytes).subspan(begin, size);
        }
    };

    void append(std::shared_ptr<const FileContent> content) {
        const std::size_t size = content->bytes.size();
        append({std::move(content), 0, size});
    }
    void append(Slice slice) {
        ends_.push_back(size() + slice.size);
        slices_.push_back(std::move(slice));
    }

    const std::vector<Slice>& slices() const { return slices_; }
    std::uint64_t size() const { return ends_.empty() ? 0 : ends_.back(); }

    // Copies the bytes from `offset` on. There must be as many as `out` has.
    void copy(std::uint64_t offset, std::span<std::uint8_t> out) const {
        auto index = std::upper_bound(ends_.begin(), ends_.end(), offset) - ends_.begin();
        while (!out.empty()) {
            const std::span<const std::uint8_t> bytes = slices_[index].bytes();
            const std::uint64_t from = offset - (ends_[index] - bytes.size());
            const std::size_t count = std::min<std::uint64_t>(bytes.size() - from, out.size());
            std::copy_n(bytes.data() + from, count, out.data());
            out = out.subspan(count);
            offset += count;
            ++index;
        }
    }

  private:
    std::vector<Slice> slices_;
    std::vector<std::uint64_t> ends_;  // offset of the end of each slice
};

}  // namespace gompfs
