// A bucket sort: many buckets of bytes, which are written at the same time and read one after
// another.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "common/spill.h"
#include "statistics/corpus.h"

namespace gompfs {

// Buckets of bytes. Each bucket is written in chunks, which are spilled when they are full.
class BucketSort {
  public:
    struct Chunk {
        std::uint64_t order;  // position in its bucket: by writer, then by the order of writing
        std::uint64_t offset;
        std::uint32_t size;
    };

    // Writes to all buckets. Each thread needs its own writer.
    class Writer {
      public:
        Writer(BucketSort& sort, std::uint32_t order)
            : sort_(sort), next_order_(std::uint64_t{order} << 32), open_(sort.size()) {}

        struct Open {
            std::vector<std::uint8_t> bytes;
            NgramKey last = 0;  // base of the next difference; 0 at the start of a chunk
        };
        Open& open(std::size_t bucket) {
            if (open_[bucket].bytes.size() >= kChunkSize) {
                spill_chunk(bucket);
            }
            return open_[bucket];
        }
        void finish();

      private:
        void spill_chunk(std::size_t bucket);

        BucketSort& sort_;
        std::uint64_t next_order_;
        std::vector<Open> open_;
    };

    BucketSort(Spill& spill, std::size_t num_buckets) : spill_(spill), chunks_(num_buckets) {}

    std::size_t size() const { return chunks_.size(); }
    // The chunks of a bucket in order, after all writers have finished.
    std::vector<Chunk> chunks(std::size_t bucket) const;

  private:
    static constexpr std::size_t kChunkSize = 8 << 10;

    Spill& spill_;
    std::mutex mutex_;
    std::vector<std::vector<Chunk>> chunks_;
};

}  // namespace gompfs
