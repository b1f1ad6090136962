// Decodes gompresso-byte by the strategies of the paper (strategies.cuh), to compare them.
//
// Launch: as decode_byte. Shared memory: kStrategyBytesPerWarp for each warp.
#include "byte_block.cuh"
#include "strategies.cuh"

namespace gompfs {

class ByteBlockDecoder {
  public:
    __device__ explicit ByteBlockDecoder(void*) {}

    template <class Rows>
    __device__ bool operator()(const BlockTask& task, Rows& rows) const {
        return decode_byte_block(task, rows);
    }
};

}  // namespace gompfs

GOMPFS_STRATEGY_KERNEL(decode_byte_sc, ByteBlockDecoder, sequential_copying)
GOMPFS_STRATEGY_KERNEL(decode_byte_mrr, ByteBlockDecoder, multi_round_resolution)
GOMPFS_STRATEGY_KERNEL(decode_byte_de, ByteBlockDecoder, dependency_elimination)
