// Decoded blocks that threads may read without the interpreter.
#pragma once

#include <Python.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace gompfs {

// The bytes of a block, in memory that Python lent.
struct DecodedBlock {
    Py_buffer view{};
    std::atomic<bool> was_used = true;

    std::span<const std::uint8_t> bytes() const {
        return {static_cast<const std::uint8_t*>(view.buf), static_cast<std::size_t>(view.len)};
    }
};

// Blocks by number. Who holds a block keeps its memory; it goes back to Python with the next call
// that holds the interpreter's lock.
class BlockTable {
  public:
    using Block = std::shared_ptr<DecodedBlock>;

    ~BlockTable() { clear(); }

    // The block, or nothing where it is not there.
    Block find(std::uint64_t number);

    // The rest is called with the interpreter's lock held. Throws nanobind::python_error for
    // content that has no buffer.
    void insert(std::uint64_t number, PyObject* content);
    void erase(std::uint64_t number);
    // Whether a block was read since this was last asked, or since it came.
    bool take_use(std::uint64_t number);
    void clear();

  private:
    struct Shard {
        std::mutex mutex;
        std::unordered_map<std::uint64_t, Block> blocks;
    };

    Shard& shard(std::uint64_t number) { return shards_[number % shards_.size()]; }
    void discard(DecodedBlock* block);
    void release_discarded();

    std::array<Shard, 64> shards_;
    std::mutex discarded_mutex_;
    std::vector<DecodedBlock*> discarded_;
};

}  // namespace gompfs
