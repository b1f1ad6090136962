// Objects that are used again, because making them takes as long as what they are used for.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace gompfs {

// Safe for any number of threads.
template <typename Value>
class Spares {
  public:
    // An object that is not in use, or else what make() returns.
    template <typename Make>
    std::unique_ptr<Value> take(const Make& make) {
        {
            const std::lock_guard lock(mutex_);
            if (!values_.empty()) {
                std::unique_ptr<Value> value = std::move(values_.back());
                values_.pop_back();
                return value;
            }
        }
        return make();
    }

    void give_back(std::unique_ptr<Value> value) {
        const std::lock_guard lock(mutex_);
        values_.push_back(std::move(value));
    }

  private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Value>> values_;
};

}  // namespace gompfs
