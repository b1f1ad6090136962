// Decoded blocks that threads may read without the interpreter.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace gompfs {

// Memory that somebody lent, which goes back when this ends.
struct Loan {
    virtual ~Loan() = default;
};

struct DecodedBlock {
    std::span<const std::uint8_t> bytes;
    std::unique_ptr<Loan> loan;
    std::atomic<bool> was_used = true;
};

// Blocks by number. Who holds a block keeps its memory, from any thread; loans end in the calls
// from insert on, which the lender makes.
class BlockTable {
  public:
    using Block = std::shared_ptr<DecodedBlock>;

    ~BlockTable() { clear(); }

    // The block, or nothing where it is not there.
    Block find(std::uint64_t number);

    // Whether a block was read since this was last asked, or since it came.
    bool take_use(std::uint64_t number);

    void insert(std::uint64_t number, std::span<const std::uint8_t> bytes,
                std::unique_ptr<Loan> loan);
    void erase(std::uint64_t number);
    void clear();

  private:
    struct Shard {
        std::mutex mutex;
        std::unordered_map<std::uint64_t, Block> blocks;
    };

    Shard& shard(std::uint64_t number) { return shards_[number % shards_.size()]; }
    void discard(DecodedBlock* block);
    void end_loans();

    std::array<Shard, 64> shards_;
    std::mutex discarded_mutex_;
    std::vector<DecodedBlock*> discarded_;
};

}  // namespace gompfs
