// Works on items on several threads, and takes them in the order in which they were made.
//
// A thread does what is possible at the moment: it takes the next item if that is complete, or else
// makes an item and works on it. So neither a slow item nor the one thread that takes items makes
// the others wait, as long as there is room for more items.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "common/cancellation.h"
#include "common/parallel.h"

namespace gompfs {

// Steps has:
//   Item: what is made
//   bool has_room() const: whether another item may be made before the next one is taken
//   std::unique_ptr<Item> make(): the next item, or nullptr after the last one
//   void work(Item&)
//   void take(std::unique_ptr<Item>)
// One thread at a time calls has_room and make, and one at a time calls take, with items in order.
// Any number of threads call work.
template <typename Steps>
class InOrder {
  public:
    explicit InOrder(Steps& steps) : steps_(steps) {}

    // Returns after the last item was taken, or throws what a step has thrown. If there is no work
    // for a while, all threads go back to their pool, so that they can help others while `take`
    // waits for something. They come back when it returns.
    void run(unsigned num_threads) {
        do {
            is_idle_ = false;
            parallel_for(num_threads, num_threads, [this](std::size_t) { help(); });
        } while (!is_over());
    }

  private:
    static constexpr auto kLongestWait = std::chrono::milliseconds(20);

    struct Slot {
        std::unique_ptr<typename Steps::Item> item;
        bool is_ready = false;
    };

    void help() {
        std::unique_lock lock(mutex_);
        const auto has_something_to_do = [this] { return can_take() || can_make() || is_over(); };
        try {
            while (!is_over() && !is_idle_) {
                if (!changed_.wait_for(lock, kLongestWait, has_something_to_do)) {
                    is_idle_ = true;
                } else if (can_take()) {
                    take(lock);
                } else if (can_make()) {
                    make(lock);
                }
                throw_if_cancelled();
            }
        } catch (...) {
            if (!lock.owns_lock()) {
                lock.lock();
            }
            has_failed_ = true;
            changed_.notify_all();
            throw;
        }
    }

    bool can_take() const { return !is_taking_ && !slots_.empty() && slots_.front().is_ready; }
    bool can_make() const { return !are_all_made_ && (slots_.empty() || steps_.has_room()); }
    bool is_over() const { return has_failed_ || (are_all_made_ && slots_.empty() && !is_taking_); }

    // The mutex is unlocked while the item is taken.
    void take(std::unique_lock<std::mutex>& lock) {
        is_taking_ = true;
        std::unique_ptr<typename Steps::Item> item = std::move(slots_.front().item);
        slots_.pop_front();
        lock.unlock();
        steps_.take(std::move(item));
        lock.lock();
        is_taking_ = false;
        changed_.notify_all();
    }

    // The mutex is unlocked while the item is worked on.
    void make(std::unique_lock<std::mutex>& lock) {
        std::unique_ptr<typename Steps::Item> item = steps_.make();
        if (item == nullptr) {
            are_all_made_ = true;
            changed_.notify_all();
            return;
        }
        slots_.push_back({std::move(item)});
        Slot& slot = slots_.back();  // stays where it is until it is taken
        lock.unlock();
        steps_.work(*slot.item);
        lock.lock();
        slot.is_ready = true;
        if (can_take()) {
            changed_.notify_one();
        }
    }

    Steps& steps_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Slot> slots_;  // the items that were made and not taken, in order
    bool are_all_made_ = false;
    bool is_taking_ = false;
    bool is_idle_ = false;  // a thread has waited in vain, and all are to leave
    bool has_failed_ = false;
};

}  // namespace gompfs
