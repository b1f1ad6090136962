// Finds the best match at each position of a block, as BestMatches::best in
// native/codec/best_match.h does; where there is none of four bytes, the best of three bytes.
//
// find_matches_narrow keeps the text and the links of a block in shared memory, where a search
// follows a link in about 30 cycles. find_matches_wide leaves both in device memory, for blocks and
// GPUs for which shared memory is too small.
//
// Launch: one CTA of up to kFindThreads threads, whole warps, per block.
// Mapping: a warp takes a contiguous range of positions; a lane takes the next one when it has
//   finished one.
// Reads: the content of block i at content + i * block_size; links, short_links and sums at i *
//   items_per_block(block_size). short_links is not used unless finds_short, and sums not without
//   entropy coding (is_bit).
// Writes: matches[i * items_per_block(block_size) + p] for each position p of block i: a Match as
//   pack_match packs it, or 0.
// Shared memory: find_matches_narrow: kTextPadding bytes, then a byte and a position for each byte
//   of a block. find_matches_wide: none.
// Requires: content is aligned to 16 bytes, and block_size is a multiple of 16 if there are several
//   blocks; 16 bytes after the content are readable.
// Fails: never.
// Oracle: native/codec/best_match.h (tests/conformance/parse_cases.py).
// Caller: gompfs/gpu/parser.py.
#include "encode/parse_batch.cuh"

namespace gompfs {

constexpr u32 kTextPadding = 32;
constexpr int kFindThreads = 1024;

// A search follows links until a candidate begins with the four bytes of the position; then it
// compares the bytes after them. Searches take different numbers of steps. So a lane that has
// finished takes the next position at once, and lanes that have found a candidate wait until
// several have, because comparing takes the time of many steps.
constexpr u32 kMinIdle = 8;
constexpr u32 kMinHits = 12;
constexpr u32 kSteps = 2;  // between two looks at the other lanes

// The same for all positions of a block.
template <typename Position, bool kEntropyCoded>
struct SearchInput {
    Text text;
    const Position* links;
    const Position* short_links;
    Costs<kEntropyCoded> costs;
    u32 size;
    SearchRules rules;
    u64* matches;
};

template <typename Position, bool kEntropyCoded>
class Search {
  public:
    __device__ explicit Search(const SearchInput<Position, kEntropyCoded>& input) : input_(input) {}

    __device__ bool is_idle() const { return state_ == State::kIdle; }
    __device__ bool has_hit() const { return state_ == State::kHit; }

    // Begins with a position.
    __device__ void start(u32 position) {
        position_ = position;
        first_word_ = input_.text.word(position);
        link_ = input_.links[position];
        shift_ = 0;
        length_ = kHashedLength - 1;
        // One more, as the first link of a position is not counted; see step.
        num_steps_ = input_.rules.chain_length + 1;
        found_ = Match{};
        state_ = State::kFollowing;
    }

    // Looks at one candidate.
    __device__ void step() {
        if (state_ != State::kFollowing) {
            return;
        }
        const u32 least_steps = shift_ == 0 ? 1 : 0;
        if (link_ == kNoLink<Position> || link_ < shift_ || num_steps_ == least_steps) {
            finish();
            return;
        }
        --num_steps_;
        if (input_.text.word(link_ - shift_) == first_word_) {
            state_ = State::kHit;
        } else {
            link_ = input_.links[link_];
        }
    }

    // Compares all bytes of the candidate, after a hit.
    __device__ void compare() {
        const u32 limit = min(input_.size - position_, input_.rules.max_match_length);
        const u32 source = link_ - shift_;
        const u32 longer = input_.text.common_length(source, position_, limit, kHashedLength);
        state_ = State::kFollowing;
        if (longer <= length_) {
            link_ = input_.links[link_];
            return;
        }
        const u32 offset = position_ - source;
        if (offset > input_.rules.max_match_offset) {
            finish();
            return;
        }
        length_ = longer;
        const int gain = input_.costs.gain_of(position_, length_, offset);
        if (gain > found_.gain) {
            found_ = {length_, offset, gain};
        }
        if (length_ >= min(limit, input_.rules.nice_length)) {
            finish();
            return;
        }
        // Any longer match contains the four bytes that end one byte after this one.
        shift_ = length_ - kHashedLength + 1;
        link_ = input_.links[position_ + shift_];
    }

  private:
    enum class State { kIdle, kFollowing, kHit };

    __device__ void finish() {
        if (found_.length == 0 && input_.rules.finds_short) {
            found_ = best_short(input_.text, input_.costs, input_.short_links, position_);
        }
        input_.matches[position_] = pack_match(found_);
        state_ = State::kIdle;
    }

    const SearchInput<Position, kEntropyCoded>& input_;
    State state_ = State::kIdle;
    u32 position_ = 0;
    u32 link_ = 0;   // the next candidate: its bytes from shift_ on
    u32 shift_ = 0;  // of the chain that is followed: that of the position this much later
    u32 first_word_ = 0;
    u32 length_ = 0;  // of the longest match so far
    u32 num_steps_ = 0;
    Match found_{};
};

// Searches the positions from `next` to `end`, with all lanes of a warp.
template <typename Position, bool kEntropyCoded>
__device__ inline void search_range(const SearchInput<Position, kEntropyCoded>& input, u32 next,
                                    u32 end) {
    Search<Position, kEntropyCoded> search(input);
    for (;;) {
        const u32 idle = __ballot_sync(kAllLanes, search.is_idle());
        const u32 num_idle = static_cast<u32>(__popc(idle));
        if (next < end && num_idle >= kMinIdle) {
            const u32 position = next + static_cast<u32>(__popc(idle & lanes_below(lane_id())));
            if (search.is_idle() && position < end) {
                search.start(position);
            }
            next += num_idle;
        } else if (idle == kAllLanes) {
            return;
        }
#pragma unroll
        for (u32 step = 0; step < kSteps; ++step) {
            search.step();
        }
        const u32 hits = __ballot_sync(kAllLanes, search.has_hit());
        const bool none_follows = __all_sync(kAllLanes, search.is_idle() || search.has_hit());
        if (none_follows || static_cast<u32>(__popc(hits)) >= kMinHits) {
            if (search.has_hit()) {
                search.compare();
            }
        }
    }
}

template <typename Position, bool kEntropyCoded>
__device__ inline void search_block(const ParseBlock& block, const Text& text,
                                    const Position* links, const Position* short_links,
                                    const u16* sums, const SearchRules& rules, u64* matches) {
    const SearchInput<Position, kEntropyCoded> input{
        text, links, short_links, Costs<kEntropyCoded>(sums), block.size, rules, matches};
    const u32 num_warps = blockDim.x / kWarpSize, warp = threadIdx.x / kWarpSize;
    const u32 share = (block.num_linked + num_warps - 1) / num_warps;
    search_range(input, min(warp * share, block.num_linked),
                 min((warp + 1) * share, block.num_linked));
    for (u32 position = block.num_linked + threadIdx.x; position < block.size;
         position += blockDim.x) {
        matches[position] = 0;
    }
}

template <typename Position>
__device__ inline void search_block_of(bool is_bit, const ParseBlock& block, const Text& text,
                                       const Position* links, const Position* short_links,
                                       const u16* sums, const SearchRules& rules, u64* matches) {
    if (is_bit) {
        search_block<Position, true>(block, text, links, short_links, sums, rules, matches);
    } else {
        search_block<Position, false>(block, text, links, short_links, sums, rules, matches);
    }
}

// Copies whole vectors from device to shared memory: those that `size` bytes are in.
__device__ inline void copy_to_shared(const void* from, u32 size, uint4* to) {
    for (u32 vector = threadIdx.x; vector < (size + 15) / 16; vector += blockDim.x) {
        to[vector] = static_cast<const uint4*>(from)[vector];
    }
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kFindThreads)
    find_matches_narrow(const unsigned char* content, unsigned long long content_size,
                        unsigned int block_size, const unsigned short* links,
                        const unsigned short* short_links, const unsigned short* sums,
                        unsigned int chain_length, unsigned int nice_length,
                        unsigned int max_match_length, unsigned int max_match_offset,
                        unsigned int finds_short, unsigned int is_bit,
                        unsigned long long* matches) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    const ParseBlock block = block_of(blockIdx.x, content, content_size, block_size);
    const u64 first = blockIdx.x * items_per_block(block_size);
    const u32 text_vectors = (block.size + 15) / 16;
    uint4* const shared_links = shared_memory + text_vectors + kTextPadding / sizeof(uint4);
    copy_to_shared(block.content, block.size, shared_memory);
    copy_to_shared(links + first, 2 * block.size, shared_links);
    __syncthreads();
    const SearchRules rules{chain_length, nice_length, max_match_length, max_match_offset,
                            finds_short != 0};
    search_block_of(is_bit != 0, block, Text(reinterpret_cast<const u8*>(shared_memory)),
                    reinterpret_cast<const u16*>(shared_links),
                    finds_short != 0 ? short_links + first : nullptr,
                    is_bit != 0 ? sums + first : nullptr, rules, matches + first);
}

extern "C" __global__ void find_matches_wide(
    const unsigned char* content, unsigned long long content_size, unsigned int block_size,
    const unsigned int* links, const unsigned int* short_links, const unsigned short* sums,
    unsigned int chain_length, unsigned int nice_length, unsigned int max_match_length,
    unsigned int max_match_offset, unsigned int finds_short, unsigned int is_bit,
    unsigned long long* matches) {
    using namespace gompfs;
    const ParseBlock block = block_of(blockIdx.x, content, content_size, block_size);
    const u64 first = blockIdx.x * items_per_block(block_size);
    const SearchRules rules{chain_length, nice_length, max_match_length, max_match_offset,
                            finds_short != 0};
    search_block_of(is_bit != 0, block, Text(block.content), links + first,
                    finds_short != 0 ? short_links + first : nullptr,
                    is_bit != 0 ? sums + first : nullptr, rules, matches + first);
}
