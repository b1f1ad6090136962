// An array that grows at its end, for one item per file or so: memory first, then a temporary file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "common/spill.h"

namespace gompfs {

// Items that are near the last one read are there without a system call. Not thread-safe.
template <typename Item>
class SpilledItems {
    static_assert(std::is_trivially_copyable_v<Item>);

  public:
    // `directory` is for the file. Methods throw std::system_error if it cannot be written or read.
    explicit SpilledItems(const std::string& directory)
        : spill_({directory, kInMemory, ~std::uint64_t{0}}) {
        newest_.reserve(kAtOnce);
    }

    std::uint64_t size() const { return num_stored_ + newest_.size(); }
    bool empty() const { return size() == 0; }

    void push_back(const Item& item) {
        newest_.push_back(item);
        if (newest_.size() == kAtOnce) {
            spill_.append({reinterpret_cast<const std::uint8_t*>(newest_.data()), kBytesAtOnce});
            num_stored_ += kAtOnce;
            newest_.clear();
        }
    }

    // The index must be below size().
    Item operator[](std::uint64_t index) const {
        if (index >= num_stored_) {
            return newest_[index - num_stored_];
        }
        const std::uint64_t first = index / kAtOnce * kAtOnce;
        if (window_.empty() || first != window_start_) {
            window_.resize(kAtOnce);
            spill_.read(first * sizeof(Item),
                        {reinterpret_cast<std::uint8_t*>(window_.data()), kBytesAtOnce});
            window_start_ = first;
        }
        return window_[index - first];
    }

  private:
    static constexpr std::uint64_t kInMemory = 1 << 20;
    static constexpr std::size_t kAtOnce = std::max<std::size_t>(4096 / sizeof(Item), 1);
    static constexpr std::size_t kBytesAtOnce = kAtOnce * sizeof(Item);

    Spill spill_;
    std::uint64_t num_stored_ = 0;  // in spill_
    std::vector<Item> newest_;      // all others
    mutable std::vector<Item> window_;
    mutable std::uint64_t window_start_ = 0;
};

}  // namespace gompfs
