// Finds the best match at each position of a block, as BestMatches::best in
// native/codec/parse/best_match.h does; where there is none of four bytes, the best of three bytes.
//
// find_matches_narrow keeps the text and the links of a block in shared memory, where a search
// follows a link in about 30 cycles. find_matches_wide leaves both in device memory, for blocks and
// GPUs for which shared memory is too small.
//
// Launch: one CTA of up to kFindThreads threads, whole warps, per block.
// Mapping: a warp takes kPositionsPerShare positions at a time. A lane looks at the first candidate
//   of one position, then goes on with any of the searches that are not done.
// Reads: the content of block i at content + i * block_size; links, short_links and sums at i *
//   items_per_block(block_size).
// Writes: matches[i * items_per_block(block_size) + p] for each position p of block i: a Match as
//   pack_match packs it, or 0.
// Shared memory: 16 bytes, and a SearchQueue for each warp. find_matches_narrow: also kTextPadding
//   bytes, and a byte and a position for each byte of a block.
// Requires: content is aligned to 16 bytes, and block_size is a multiple of 16 if there are several
//   blocks; 16 bytes after the content are readable.
// Fails: never.
// Oracle: native/codec/parse/best_match.h (tests/kernels/parse_cases.py).
// Caller: gompfs/gpu/encode/parser.py.
#include "encode/parse_batch.cuh"

namespace gompfs {

constexpr int kFindThreads = 1024;

// The same for all positions of a block.
template <typename Position>
struct SearchInput {
    Text text;
    const Position* links;
    Costs<true> costs;
    u32 size;
    SearchRules rules;
    u64* matches;

    // The most bytes that a match at a position may have.
    __device__ u32 limit_of(u32 position) const {
        return min(size - position, rules.max_match_length);
    }
};

// A search of which a part is done.
struct Search {
    u32 position;
    u32 length;     // of the longest match so far; kHashedLength - 1 if there is none
    u32 num_steps;  // candidates that may still be looked at
    int gain;       // of the best match so far

    // A longer match contains the four bytes that end one byte after the longest match so far. The
    // search follows the chain of these bytes. Returns where they begin, as a distance from the
    // position of the search.
    __device__ u32 shift() const { return length - (kHashedLength - 1); }

    // Until a match is found, a search looks at chain_length candidates at most. After that it may
    // look at one more, because the first candidate is not counted: num_steps begins with
    // chain_length + 1.
    __device__ u32 least_steps() const { return length < kHashedLength ? 1 : 0; }
};

constexpr int kSearchLengthShift = 20, kSearchStepsShift = 29, kSearchGainShift = 40;

__device__ inline u64 pack_search(const Search& search) {
    return search.position | static_cast<u64>(search.length) << kSearchLengthShift |
           static_cast<u64>(search.num_steps) << kSearchStepsShift |
           static_cast<u64>(search.gain) << kSearchGainShift;
}

__device__ inline Search unpack_search(u64 packed) {
    return {static_cast<u32>(packed) & ((1u << kSearchLengthShift) - 1),
            static_cast<u32>(packed >> kSearchLengthShift) & 511,
            static_cast<u32>(packed >> kSearchStepsShift) & 2047,
            static_cast<int>(packed >> kSearchGainShift)};
}

// The next step of a search after a comparison: look at the next candidate of the same chain,
// follow the chain of a longer match, or end.
enum class Next { kCandidate, kChain, kNothing };

// Compares the candidate at `source`, and stores the match if it is better. Returns the next step.
template <typename Position>
__device__ inline Next compare(const SearchInput<Position>& input, u32 source, Search& search) {
    const u32 limit = input.limit_of(search.position);
    const u32 length = input.text.common_length(source, search.position, limit, kHashedLength);
    const u32 offset = search.position - source;
    if (length <= search.length) {
        return Next::kCandidate;
    }
    if (offset > input.rules.max_match_offset) {
        return Next::kNothing;
    }
    search.length = length;
    const int gain = input.costs.gain_of(search.position, length, offset);
    if (gain > search.gain) {
        search.gain = gain;
        input.matches[search.position] = pack_match({length, offset, gain});
    }
    return length < min(limit, input.rules.nice_length) ? Next::kChain : Next::kNothing;
}

// Searches that wait, in shared memory. A warp has its own.
constexpr u32 kMaxQueued = 128;

struct SearchQueue {
    u64 searches[kMaxQueued];
};

// Looks at the first candidate of 32 positions, and adds searches that go on to the queue. Returns
// the new number of searches in the queue.
template <typename Position>
__device__ inline u32 begin_searches(const SearchInput<Position>& input, u32 position, u32 end,
                                     SearchQueue& queue, u32 num_waiting) {
    Search search{position, kHashedLength - 1, input.rules.chain_length + 1, 0};
    bool goes_on = false;
    if (position < end) {
        input.matches[position] = 0;
        const u32 link = input.links[position];
        goes_on = link != kNoLink<Position>;
        if (goes_on && input.text.word(link) == input.text.word(position)) {
            --search.num_steps;
            goes_on = compare(input, link, search) == Next::kChain;
            if (goes_on) {
                const u32 next = input.links[position + search.shift()];
                goes_on = next != kNoLink<Position> && next >= search.shift();
            }
        }
    }
    const u32 all = __ballot_sync(kAllLanes, goes_on);
    if (goes_on) {
        queue.searches[num_waiting + __popc(all & lanes_below(lane_id()))] = pack_search(search);
    }
    __syncwarp();
    return num_waiting + static_cast<u32>(__popc(all));
}

// Searches take different numbers of steps. So a lane that has finished takes a new search from the
// queue, and lanes that have found a candidate wait until several have, because comparing takes the
// time of many steps.
constexpr u32 kMinFree = 8;
constexpr u32 kMinHits = 8;
constexpr u32 kSteps = 4;  // between two looks at the other lanes

// A lane that follows links until a candidate begins with the four bytes of the position.
template <typename Position>
class Follower {
  public:
    __device__ explicit Follower(const SearchInput<Position>& input) : input_(input) {}

    __device__ bool is_free() const { return state_ == State::kFree; }
    __device__ bool has_hit() const { return state_ == State::kHit; }

    __device__ void take(const Search& search) {
        search_ = search;
        first_word_ = input_.text.word(search.position);
        state_ = State::kFollowing;
        begin_chain();
    }

    __device__ void step() {
        if (state_ != State::kFollowing) {
            return;
        }
        const u32 shift = search_.shift();
        if (link_ == kNoLink<Position> || link_ < shift ||
            search_.num_steps == search_.least_steps()) {
            state_ = State::kFree;
            return;
        }
        --search_.num_steps;
        const u32 next = input_.links[link_];
        if (input_.text.word(link_ - shift) == first_word_) {
            state_ = State::kHit;
        } else {
            link_ = next;
        }
    }

    // Compares the candidate, after a hit.
    __device__ void compare_hit() {
        const Next next = compare(input_, link_ - search_.shift(), search_);
        state_ = next == Next::kNothing ? State::kFree : State::kFollowing;
        if (next == Next::kChain) {
            begin_chain();
        } else if (next == Next::kCandidate) {
            link_ = input_.links[link_];
        }
    }

  private:
    enum class State { kFree, kFollowing, kHit };

    __device__ void begin_chain() { link_ = input_.links[search_.position + search_.shift()]; }

    const SearchInput<Position>& input_;
    State state_ = State::kFree;
    u32 link_ = 0;  // the next candidate: its bytes from shift() on
    u32 first_word_ = 0;
    Search search_{};
};

// The warps of a CTA take this many positions at a time.
constexpr u32 kPositionsPerShare = 256;

struct FindShared {
    alignas(16) u32 next_share;  // the first position that no warp has taken
    alignas(16) SearchQueue queues[kFindThreads / kWarpSize];  // one for each warp of the CTA
};

// Takes the next positions that no warp has taken. Returns the first one.
__device__ inline u32 take_share(FindShared& shared) {
    u32 first = 0;
    if (lane_id() == 0) {
        first = atomicAdd(&shared.next_share, kPositionsPerShare);
    }
    return __shfl_sync(kAllLanes, first, 0);
}

// Searches positions below `end`, with all lanes of a warp, until all are taken.
template <typename Position>
__device__ inline void search_shares(const SearchInput<Position>& input, u32 end,
                                     FindShared& shared) {
    SearchQueue& queue = shared.queues[threadIdx.x / kWarpSize];
    Follower<Position> follower(input);
    u32 num_waiting = 0, free = kAllLanes;
    u32 next = take_share(shared), share_end = next + kPositionsPerShare;
    for (;;) {
        if (next < end && num_waiting <= kMaxQueued - kWarpSize) {
            num_waiting = begin_searches(input, next + lane_id(), end, queue, num_waiting);
            next += kWarpSize;
            if (next == share_end) {
                next = take_share(shared);
                share_end = next + kPositionsPerShare;
            }
            continue;
        }
        if (num_waiting != 0 && static_cast<u32>(__popc(free)) >= kMinFree) {
            const u32 rank = static_cast<u32>(__popc(free & lanes_below(lane_id())));
            if (follower.is_free() && rank < num_waiting) {
                follower.take(unpack_search(queue.searches[num_waiting - 1 - rank]));
            }
            num_waiting -= min(num_waiting, static_cast<u32>(__popc(free)));
            __syncwarp();
        } else if (free == kAllLanes) {
            return;
        }
#pragma unroll
        for (u32 step = 0; step < kSteps; ++step) {
            follower.step();
        }
        free = __ballot_sync(kAllLanes, follower.is_free());
        const u32 hits = __ballot_sync(kAllLanes, follower.has_hit());
        if (((free | hits) == kAllLanes || static_cast<u32>(__popc(hits)) >= kMinHits) &&
            follower.has_hit()) {
            follower.compare_hit();
        }
    }
}

// For positions without a match, takes the nearest match of three bytes.
template <typename Position>
__device__ inline void add_short_matches(const SearchInput<Position>& input,
                                         const Position* short_links, u32 num_linked) {
    for (u32 position = threadIdx.x; position < num_linked; position += blockDim.x) {
        if (input.matches[position] == 0) {
            input.matches[position] =
                pack_match(best_short(input.text, input.costs, short_links, position));
        }
    }
}

template <typename Position>
__device__ inline void search_block(const ParseBlock& block, const Text& text,
                                    const Position* links, const Position* short_links,
                                    const u16* sums, const SearchRules& rules, FindShared& shared,
                                    u64* matches) {
    const SearchInput<Position> input{text, links, Costs<true>(sums), block.size, rules, matches};
    search_shares(input, block.num_linked, shared);
    for (u32 position = block.num_linked + threadIdx.x; position < block.size;
         position += blockDim.x) {
        matches[position] = 0;
    }
    __syncthreads();
    add_short_matches(input, short_links, block.num_linked);
}

// Begins to use shared memory. Returns the memory after the queues of the CTA's warps.
__device__ inline uint4* start_sharing(FindShared& shared) {
    if (threadIdx.x == 0) {
        shared.next_share = 0;
    }
    return reinterpret_cast<uint4*>(&shared.queues[blockDim.x / kWarpSize]);
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kFindThreads)
    find_matches_narrow(const unsigned char* content, unsigned long long content_size,
                        unsigned int block_size, const unsigned short* links,
                        const unsigned short* short_links, const unsigned short* sums,
                        unsigned int chain_length, unsigned int nice_length,
                        unsigned int max_match_length, unsigned int max_match_offset,
                        unsigned long long* matches) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    const ParseBlock block = block_of(blockIdx.x, content, content_size, block_size);
    const u64 first = blockIdx.x * items_per_block(block_size);
    const u32 text_vectors = (block.size + 15) / 16;
    FindShared& shared = *reinterpret_cast<FindShared*>(shared_memory);
    uint4* const text = start_sharing(shared);
    uint4* const shared_links = text + text_vectors + kTextPadding / sizeof(uint4);
    copy_to_shared(block.content, block.size, text);
    copy_to_shared(links + first, 2 * block.size, shared_links);
    __syncthreads();
    const SearchRules rules{chain_length, nice_length, max_match_length, max_match_offset, true};
    search_block(block, Text(reinterpret_cast<const u8*>(text)),
                 reinterpret_cast<const u16*>(shared_links), short_links + first, sums + first,
                 rules, shared, matches + first);
}

extern "C" __global__ void find_matches_wide(
    const unsigned char* content, unsigned long long content_size, unsigned int block_size,
    const unsigned int* links, const unsigned int* short_links, const unsigned short* sums,
    unsigned int chain_length, unsigned int nice_length, unsigned int max_match_length,
    unsigned int max_match_offset, unsigned long long* matches) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    const ParseBlock block = block_of(blockIdx.x, content, content_size, block_size);
    const u64 first = blockIdx.x * items_per_block(block_size);
    FindShared& shared = *reinterpret_cast<FindShared*>(shared_memory);
    start_sharing(shared);
    __syncthreads();
    const SearchRules rules{chain_length, nice_length, max_match_length, max_match_offset, true};
    search_block(block, Text(block.content), links + first, short_links + first, sums + first,
                 rules, shared, matches + first);
}
