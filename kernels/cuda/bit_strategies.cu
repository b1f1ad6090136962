// Decodes gompresso-bit by the strategies of the paper (strategies.cuh), to compare them.
//
// Launch: as decode_bit. Shared memory: kStrategyBytesPerWarp for each warp, then as decode_bit.
#include "bit_block.cuh"
#include "strategies.cuh"

namespace gompfs {

class BitBlockDecoder {
  public:
    __device__ explicit BitBlockDecoder(void* memory)
        : classes_(static_cast<TokenClass*>(memory)),
          shared_(
              reinterpret_cast<BitShared*>(classes_ + kNumTokenSymbols)[threadIdx.x / kWarpSize]) {
        fill_token_classes(classes_);
    }

    template <class Rows>
    __device__ bool operator()(const BlockTask& task, Rows& rows) const {
        return decode_bit_block(task, shared_, classes_, rows);
    }

  private:
    TokenClass* classes_;
    BitShared& shared_;
};

}  // namespace gompfs

GOMPFS_STRATEGY_KERNEL(decode_bit_sc, BitBlockDecoder, sequential_copying)
GOMPFS_STRATEGY_KERNEL(decode_bit_mrr, BitBlockDecoder, multi_round_resolution)
GOMPFS_STRATEGY_KERNEL(decode_bit_de, BitBlockDecoder, dependency_elimination)
