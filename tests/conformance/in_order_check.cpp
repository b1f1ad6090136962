// Works on numbers with InOrder: some steps fail, or take long. Prints what went wrong.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "common/in_order.h"

namespace {

using std::chrono::milliseconds;

struct Failed : std::exception {};

// The numbers from 0 on. A step fails for its own number; -1: never.
struct Numbers {
    struct Item {
        int number, result;
    };

    int count, room;
    int fails_to_make = -1, fails_to_work = -1, fails_to_take = -1;
    int long_take = -1;  // then all other threads are without work for a while
    int num_made = 0, num_taken = 0;
    bool is_in_order = true;
    std::atomic<int> num_ahead{0};
    std::atomic<bool> is_after_long_take{false};
    std::atomic<int> num_at_work{0};
    std::mutex mutex{};
    int most_at_work = 0;  // at the same time, after the long take

    bool has_room() const { return num_ahead < room; }

    std::unique_ptr<Item> make() {
        if (num_made == fails_to_make) {
            throw Failed();
        }
        if (num_made == count) {
            return nullptr;
        }
        ++num_ahead;
        return std::make_unique<Item>(Item{num_made++, 0});
    }

    void work(Item& item) {
        if (item.number == fails_to_work) {
            throw Failed();
        }
        item.result = 7 * item.number;
        if (is_after_long_take) {
            {
                const std::lock_guard lock(mutex);
                most_at_work = std::max(most_at_work, ++num_at_work);
            }
            std::this_thread::sleep_for(milliseconds(1));
            --num_at_work;
        }
    }

    void take(std::unique_ptr<Item> item) {
        if (item->number == fails_to_take) {
            throw Failed();
        }
        is_in_order = is_in_order && item->number == num_taken && item->result == 7 * num_taken;
        ++num_taken;
        --num_ahead;
        if (item->number == long_take) {
            std::this_thread::sleep_for(milliseconds(100));
            is_after_long_take = true;
        }
    }
};

bool is_below(int number, int count) { return number >= 0 && number < count; }

// Whether all numbers are taken in order, or the failure of a step is passed on.
bool takes_all_or_fails(std::mt19937& random) {
    const auto below = [&random](int limit) { return static_cast<int>(random() % limit); };
    Numbers numbers{below(200), 1 + below(20)};
    int* const steps[] = {&numbers.fails_to_make, &numbers.fails_to_work, &numbers.fails_to_take};
    if (const int step = below(6); step < 3) {
        *steps[step] = below(200);
    }
    const bool must_fail = is_below(numbers.fails_to_make, numbers.count + 1) ||
                           is_below(numbers.fails_to_work, numbers.count) ||
                           is_below(numbers.fails_to_take, numbers.count);
    try {
        gompfs::InOrder(numbers).run(1 + below(8));
    } catch (const Failed&) {
        return must_fail && numbers.is_in_order;
    }
    return !must_fail && numbers.is_in_order && numbers.num_taken == numbers.count;
}

// How many threads work at the same time after a long take.
int most_at_work_after_long_take() {
    Numbers numbers{.count = 200, .room = 20, .long_take = 5};
    gompfs::InOrder(numbers).run(4);
    return numbers.most_at_work;
}

}  // namespace

int main() {
    std::mt19937 random(1);
    for (int round = 0; round < 500; ++round) {
        if (!takes_all_or_fails(random)) {
            std::printf("round %d\n", round);
            return 1;
        }
    }
    std::printf("%d threads\n", most_at_work_after_long_take());
    return 0;
}
