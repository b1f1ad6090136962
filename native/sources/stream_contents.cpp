// Cuts contents into chunks, and finds those that are stored; see stream_contents.h.
//
// A chunk ends where a hash of the last 64 bytes has kCutBits zeros at its top ("gear": each byte
// adds a random number to twice the hash). Each MiB of a content is cut by itself, on any thread.
#include "sources/stream_contents.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <stdexcept>

#include "common/parallel.h"
#include "common/sha256.h"

namespace gompfs {
namespace {

constexpr int kCutBits = 10;  // chunks have 2 KiB on average
constexpr std::size_t kMinChunk = 1 << 10, kMaxChunk = 16 << 10;
constexpr std::size_t kCutAtOnce = 1 << 20;
constexpr std::size_t kHashedBytes = 64;          // as many as a hash has bits
constexpr std::uint64_t kMinDistance = 64 << 10;  // of equal chunks in a content

constexpr std::array<std::uint64_t, 256> kGear = [] {
    std::array<std::uint64_t, 256> gear{};
    std::uint64_t state = 0;
    for (std::uint64_t& number : gear) {  // splitmix64
        std::uint64_t mixed = state += 0x9e3779b97f4a7c15;
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
        number = mixed ^ mixed >> 31;
    }
    return gear;
}();

std::size_t first_chunk_size(StreamContents::Bytes bytes) {
    const std::size_t end = std::min(bytes.size(), kMaxChunk);
    std::uint64_t hash = 0;
    for (std::size_t at = kMinChunk - kHashedBytes; at < end; ++at) {
        hash = (hash << 1) + kGear[bytes[at]];
        if (at + 1 >= kMinChunk && hash >> (64 - kCutBits) == 0) {
            return at + 1;
        }
    }
    return end;
}

}  // namespace

StreamContents::Chunks StreamContents::cut(Bytes bytes) {
    Chunks chunks;
    while (!bytes.empty()) {
        const std::size_t size = first_chunk_size(bytes);
        Sha256 sha256;
        sha256.update(bytes.first(size));
        const Sha256::Digest digest = sha256.digest();
        Chunk& chunk = chunks.emplace_back(Chunk{{}, static_cast<std::uint32_t>(size)});
        std::copy_n(digest.data(), chunk.hash.size(), chunk.hash.data());
        bytes = bytes.subspan(size);
    }
    return chunks;
}

std::vector<StreamContents::Ranges> StreamContents::add(std::span<const Bytes> contents,
                                                        unsigned num_threads) {
    std::vector<Ranges> added;
    for (const Bytes content : contents) {
        added.push_back(add_piece(content, num_threads));
        end();
    }
    return added;
}

StreamContents::Ranges StreamContents::add_piece(Bytes piece, unsigned num_threads) {
    std::vector<Chunks> chunks((piece.size() + kCutAtOnce - 1) / kCutAtOnce);
    parallel_for(chunks.size(), num_threads, [&](std::size_t index) {
        const Bytes rest = piece.subspan(index * kCutAtOnce);
        chunks[index] = cut(rest.first(std::min(rest.size(), kCutAtOnce)));
    });
    Ranges added;
    std::size_t begin = 0;
    for (const Chunk& chunk : chunks | std::views::join) {
        if (place(chunk)) {
            if (added.empty() || added.back().begin + added.back().size != begin) {
                added.push_back({begin, 0});
            }
            added.back().size += chunk.size;
        }
        begin += chunk.size;
    }
    return added;
}

std::uint64_t StreamContents::end() {
    content_start_ = placed_;
    for (const Run& run : open_runs_) {
        runs_.push_back(run);
    }
    open_runs_.clear();
    ends_.push_back(runs_.size());
    return ends_.size() - 1;
}

std::vector<StreamContents::Run> StreamContents::runs(std::uint64_t number) const {
    if (number >= ends_.size()) {
        throw std::out_of_range("there is no such content");
    }
    std::vector<Run> runs;
    const std::uint64_t end = ends_[number];
    for (std::uint64_t index = number == 0 ? 0 : ends_[number - 1]; index < end; ++index) {
        runs.push_back(runs_[index]);
    }
    return runs;
}

// Adds a chunk to the present content. Returns whether its bytes are new.
bool StreamContents::place(const Chunk& chunk) {
    Chunk* const known = find(chunk);
    const bool is_new = known == nullptr || !is_worth_a_run(*known);
    if (known == nullptr && chunks_.size() < max_chunks_) {
        remember(chunk);
    } else if (known != nullptr) {
        known->placed = placed_;
        known->position = is_new ? size_ : known->position;
    }
    append_run(is_new ? size_ : known->position, chunk.size);
    size_ += is_new ? chunk.size : 0;
    placed_ += chunk.size;
    return is_new;
}

// Whether the present content should have the bytes of a chunk that is in the stream.
bool StreamContents::is_worth_a_run(const Chunk& known) const {
    const bool was_just_before =
        known.placed >= content_start_ && placed_ - known.placed < kMinDistance;
    return continues(known.position) || (known.size >= kMinChunk && !was_just_before);
}

// Whether the last run of the present content ends at a position of the stream.
bool StreamContents::continues(std::uint64_t position) const {
    return !open_runs_.empty() && open_runs_.back().position + open_runs_.back().size == position;
}

void StreamContents::append_run(std::uint64_t position, std::uint64_t size) {
    if (continues(position)) {
        open_runs_.back().size += size;
    } else {
        open_runs_.push_back({position, size});
    }
}

// The slot of a chunk with these bytes, or the free one for it.
std::size_t StreamContents::slot_of(const Chunk& chunk) const {
    std::uint64_t hash;
    std::memcpy(&hash, chunk.hash.data(), sizeof hash);
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash & mask;
    while (slots_[slot] != 0 && chunks_[slots_[slot] - 1].hash != chunk.hash) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

// Returns the chunk of the stream with the same bytes, or null.
StreamContents::Chunk* StreamContents::find(const Chunk& chunk) {
    const std::uint32_t number = slots_[slot_of(chunk)];
    return number == 0 ? nullptr : &chunks_[number - 1];
}

// Remembers a chunk that is added to the end of the stream.
void StreamContents::remember(const Chunk& chunk) {
    chunks_.push_back(chunk);
    chunks_.back().position = size_;
    chunks_.back().placed = placed_;
    if (2 * chunks_.size() <= slots_.size()) {
        slots_[slot_of(chunk)] = static_cast<std::uint32_t>(chunks_.size());
        return;
    }
    slots_.assign(2 * slots_.size(), 0);
    for (std::uint32_t number = 0; number < chunks_.size(); ++number) {
        slots_[slot_of(chunks_[number])] = number + 1;
    }
}

}  // namespace gompfs
