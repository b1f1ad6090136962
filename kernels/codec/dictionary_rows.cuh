// Writes the bytes of a block of gompresso-bit-dictionary from its rows (row.cuh). A match from the
// dictionary is a piece like all others, whose distance leads to the dictionary from another
// origin.
#pragma once

#include "codec/row.cuh"
#include "shared/dictionary_addresses.h"

namespace gompfs {

// A dictionary in device memory, at a multiple of 16. It can be read up to kChunk bytes past its
// end.
struct GpuDictionary {
    u32 size;
    u32 reserved[3];

    __device__ const u8* bytes() const { return reinterpret_cast<const u8*>(this + 1); }
};

// Stored distances of matches from the dictionary use this in place of kNoDistance. Such a distance
// differs from kNoDistanceInDictionary by less than kMaxRowOutput, so it is at least
// kLeastInDictionary; every other distance is smaller. The position in a chunk does not change the
// bit kNoDistance of such a distance, so its source is never taken for one in the chunk.
constexpr u32 kNoDistanceInDictionary = 1u << 30;
constexpr u32 kLeastInDictionary = 1u << 29;
static_assert(kNoDistance + kMaxRowOutput < kLeastInDictionary &&
              kNoDistanceInDictionary - kMaxRowOutput >= kLeastInDictionary &&
              kMaxDictionarySize + kChunk <= kNoDistance);

// The sources of blocks that copy from their own output and from a dictionary.
struct DictionarySources {
    u32 size;                 // of the dictionary
    long long to_dictionary;  // from the start of the output, minus kNoDistanceInDictionary

    __device__ DictionarySources(const GpuDictionary& dictionary, const u8* output)
        : size(dictionary.size),
          to_dictionary(dictionary.bytes() - output -
                        static_cast<long long>(kNoDistanceInDictionary)) {}

    __device__ MatchSource of(const LaneSequence& sequence, u32 match) const {
        if (sequence.match_offset < kFromDictionary) {
            return OutputSources().of(sequence, match);
        }
        const u32 address = sequence.match_offset - kFromDictionary;
        return {address + sequence.match_length <= size,
                kNoDistanceInDictionary - kNoDistance + address - match};
    }
    __device__ const u8* origin(const u8* target, u32 stored) const {
        return target + (stored >= kLeastInDictionary ? to_dictionary
                                                      : -static_cast<long long>(kNoDistance));
    }
};

// Writes the bytes of a block from its rows by means of pieces.
struct DictionaryRows {
    RowShared& shared;
    const DictionarySources sources;

    __device__ void begin() { clear_pieces(shared); }

    // See write_row.
    __device__ bool write(BlockOutput& out, const LaneSequence& sequence) {
        return write_row(out, sequence, shared, sources);
    }
};

}  // namespace gompfs
