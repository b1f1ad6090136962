// A sort by distribution: many streams that are written at the same time and read one after
// another.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "statistics/corpus.h"
#include "statistics/spill.h"

namespace gompfs {

// Streams of bytes. Each stream is written in chunks, which are spilled when they are full.
class Streams {
  public:
    struct Chunk {
        std::uint64_t order;  // position in its stream: by writer, then by the order of writing
        std::uint64_t place;
        std::uint32_t size;
    };

    // Writes to all streams. Each thread needs its own writer.
    class Writer {
      public:
        Writer(Streams& streams, std::uint32_t order)
            : streams_(streams), next_order_(std::uint64_t{order} << 32), open_(streams.size()) {}

        struct Open {
            std::vector<std::uint8_t> bytes;
            NgramKey last = 0;  // base of the next difference; 0 at the start of a chunk
        };
        Open& open(std::size_t stream) {
            if (open_[stream].bytes.size() >= kChunkSize) {
                put_aside(stream);
            }
            return open_[stream];
        }
        void finish();

      private:
        void put_aside(std::size_t stream);

        Streams& streams_;
        std::uint64_t next_order_;
        std::vector<Open> open_;
    };

    Streams(Spill& spill, std::size_t num_streams) : spill_(spill), chunks_(num_streams) {}

    std::size_t size() const { return chunks_.size(); }
    // The chunks of a stream in order, after all writers have finished.
    std::vector<Chunk> chunks(std::size_t stream) const;

  private:
    static constexpr std::size_t kChunkSize = 8 << 10;

    Spill& spill_;
    std::mutex mutex_;
    std::vector<std::vector<Chunk>> chunks_;
};

}  // namespace gompfs
