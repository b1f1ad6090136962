// Finds the best match at each position of a block, as BestMatches::best in
// native/codec/best_match.h does; where there is none of four bytes, the best of three bytes.
//
// find_matches_narrow keeps the text and the links of a block in shared memory, where a search
// follows a link in about 30 cycles. find_matches_wide leaves both in device memory, for blocks and
// GPUs for which shared memory is too small.
//
// Launch: one CTA of up to kFindThreads threads per block.
// Mapping: the threads take positions in turn.
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

template <typename Position, bool kEntropyCoded>
class Search {
  public:
    __device__ Search(const Text& text, const Position* links, const u16* sums, u32 size,
                      const SearchRules& rules)
        : text_(text), links_(links), costs_(sums), size_(size), rules_(rules) {}

    // The best match of at least four bytes.
    __device__ Match best(u32 position) const {
        const u32 first_word = text_.word(position);
        u32 num_steps = rules_.chain_length;
        u32 link = links_[position];
        while (link != kNoLink<Position> && text_.word(link) != first_word) {
            link = --num_steps == 0 ? kNoLink<Position> : links_[link];
        }
        if (link == kNoLink<Position> || position - link > rules_.max_match_offset) {
            return {};
        }
        return improve(position, link, first_word, num_steps);
    }

    __device__ Match best_short(const Position* short_links, u32 position) const {
        return gompfs::best_short(text_, costs_, short_links, position);
    }

  private:
    // Searches for longer matches than the one at `link`.
    __device__ Match improve(u32 position, u32 link, u32 first_word, u32 num_steps) const {
        const u32 limit = min(size_ - position, rules_.max_match_length);
        const u32 nice_length = min(limit, rules_.nice_length);
        u32 length = text_.common_length(link, position, limit, kHashedLength);
        Match found = costs_.match_of(position, length, position - link);
        while (length < nice_length) {
            const u32 shift = length - kHashedLength + 1;
            link = find_longer(position, shift, first_word, num_steps, length, limit);
            if (link == kNoLink<Position>) {
                break;
            }
            const u32 offset = position + shift - link;
            if (offset > rules_.max_match_offset) {
                break;
            }
            const int gain = costs_.gain_of(position, length, offset);
            if (gain > found.gain) {
                found = {length, offset, gain};
            }
        }
        return found;
    }

    // Follows the chain of the four bytes that end one byte after `length` bytes, to a match longer
    // than that. Sets `length` to its length. Returns the link, or kNoLink.
    __device__ u32 find_longer(u32 position, u32 shift, u32 first_word, u32& num_steps, u32& length,
                               u32 limit) const {
        const u32 last_word = text_.word(position + shift);
        u32 link = links_[position + shift];
        for (;; link = links_[link]) {
            if (link == kNoLink<Position> || link < shift || num_steps == 0) {
                return kNoLink<Position>;
            }
            --num_steps;
            const u32 source = link - shift;
            if (text_.word(link) == last_word && text_.word(source) == first_word) {
                const u32 longer = text_.common_length(source, position, limit, kHashedLength);
                if (longer > length) {
                    length = longer;
                    return link;
                }
            }
        }
    }

    Text text_;
    const Position* links_;
    Costs<kEntropyCoded> costs_;
    u32 size_;
    SearchRules rules_;
};

template <typename Position, bool kEntropyCoded>
__device__ inline void search_block(const ParseBlock& block, const Text& text,
                                    const Position* links, const Position* short_links,
                                    const u16* sums, const SearchRules& rules, u64* matches) {
    const Search<Position, kEntropyCoded> search(text, links, sums, block.size, rules);
    for (u32 position = threadIdx.x; position < block.size; position += blockDim.x) {
        Match match{};
        if (position < block.num_linked) {
            match = search.best(position);
            if (match.length == 0 && rules.finds_short) {
                match = search.best_short(short_links, position);
            }
        }
        matches[position] = pack_match(match);
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
