// Decodes blocks of gompresso-bit with the match strategies of the Gompresso paper (Sitaridi et
// al., ICPP 2016), to compare them: sequential copying (decode_bit_sc), multi-round resolution
// (decode_bit_mrr) and dependency elimination (decode_bit_de), see strategies.cuh; and by pointer
// jumping (decode_bit_jump), see pointer_jumping.cuh. The mount does not use these kernels.
//
// Launch: as decode_bit.
// Mapping: as decode_bit; lane i copies the match of sequence i of each row.
// Reads: as decode_bit.
// Writes: as decode_bit; adds to the kNumCounters numbers of counters; decode_bit_jump: a word of
//   parents for each byte of output.
// Shared memory: kStrategyBytesPerWarp for each warp, then as decode_bit.
// Requires: as decode_bit; decode_bit_de requires payloads with the dependency elimination flag.
// Fails: as decode_bit.
// Oracle: native/codec/bit_decoder.cpp; the counters: check_rounds in
//   tests/kernels/check_decode_kernels.py.
// Caller: tools/experiments/strategy_blocks.py.
#include "codec/bit_block.cuh"
#include "match_list.cuh"
#include "pointer_jumping.cuh"
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

GOMPFS_STRATEGY_KERNELS(decode_bit, BitBlockDecoder)
GOMPFS_JUMPING_KERNEL(decode_bit_jump, BitBlockDecoder)
GOMPFS_LISTING_KERNEL(decode_bit_list, BitBlockDecoder)
