// A sort by distribution: many streams that are written side by side and read one after another.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "grammar/corpus.h"
#include "grammar/spill.h"

namespace gompfs {

// Streams of bytes in pieces that are put aside as they fill up.
class Streams {
  public:
    struct Chunk {
        std::uint64_t order;  // in its stream: that of the writer, then that in which it wrote
        std::uint64_t place;
        std::uint32_t size;
    };

    // Writes to all streams; one for each thread.
    class Writer {
      public:
        Writer(Streams& streams, std::uint32_t order)
            : streams_(streams), next_order_(std::uint64_t{order} << 32), open_(streams.size()) {}

        struct Open {
            std::vector<std::uint8_t> bytes;
            NgramKey last = 0;  // what differences are to: 0 where a chunk begins
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
    // The chunks of a stream in order, when all is written.
    std::vector<Chunk> chunks(std::size_t stream) const;

  private:
    static constexpr std::size_t kChunkSize = 8 << 10;

    Spill& spill_;
    std::mutex mutex_;
    std::vector<std::vector<Chunk>> chunks_;
};

}  // namespace gompfs
