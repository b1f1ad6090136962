// A queue between a thread that notices what will be needed and a thread that prepares it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace gompfs {

// Keeps only the latest items. Older items were prepared in the meantime, or would come too late.
// Safe for any number of threads.
template <typename Item>
class LatestWanted {
  public:
    explicit LatestWanted(std::size_t max_items) : max_items_(max_items) {}

    void push(Item item) {
        {
            const std::lock_guard lock(mutex_);
            items_.push_back(std::move(item));
            if (items_.size() > max_items_) {
                items_.pop_front();
            }
        }
        some_.notify_one();
    }

    // Waits for an item. Returns nothing once the queue is closed.
    std::optional<Item> wait() {
        std::unique_lock lock(mutex_);
        some_.wait(lock, [this] { return closed_ || !items_.empty(); });
        if (closed_) {
            return std::nullopt;
        }
        Item item = std::move(items_.front());
        items_.pop_front();
        return item;
    }

    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        some_.notify_all();
    }

    bool is_empty() const {
        const std::lock_guard lock(mutex_);
        return items_.empty();
    }

    bool is_closed() const {
        const std::lock_guard lock(mutex_);
        return closed_;
    }

  private:
    const std::size_t max_items_;
    mutable std::mutex mutex_;
    std::condition_variable some_;
    std::deque<Item> items_;
    bool closed_ = false;
};

}  // namespace gompfs
