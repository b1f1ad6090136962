// Decodes blocks of gompresso-byte with the match strategies of the Gompresso paper (Sitaridi et
// al., ICPP 2016), to compare them: sequential copying (decode_byte_sc), multi-round resolution
// (decode_byte_mrr) and dependency elimination (decode_byte_de), see strategies.cuh; and by pointer
// jumping (decode_byte_jump), see pointer_jumping.cuh. The mount does not use these kernels.
//
// Launch: as decode_byte.
// Mapping: as decode_byte; lane i copies the match of sequence i of each row.
// Reads: as decode_byte.
// Writes: as decode_byte; adds to the kNumCounters numbers of counters; decode_byte_jump: a word of
//   parents for each byte of output.
// Shared memory: kStrategyBytesPerWarp for each warp, then as decode_byte.
// Requires: as decode_byte; decode_byte_de requires payloads with the dependency elimination flag.
// Fails: as decode_byte.
// Oracle: native/codec/byte_codec.cpp; the counters: check_rounds in
//   tests/kernels/check_decode_kernels.py.
// Caller: tools/experiments/strategy_blocks.py.
#include "codec/byte_block.cuh"
#include "match_list.cuh"
#include "pointer_jumping.cuh"
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

GOMPFS_STRATEGY_KERNELS(decode_byte, ByteBlockDecoder)
GOMPFS_JUMPING_KERNEL(decode_byte_jump, ByteBlockDecoder)
GOMPFS_LISTING_KERNEL(decode_byte_list, ByteBlockDecoder)
