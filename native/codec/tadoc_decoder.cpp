// Decodes a payload of gompresso-tadoc on one thread; see tadoc_codec.h.
//
// On a GPU each lane of a warp decodes one sub-block. Here one thread decodes some rows of ranks
// (item_rows.h), and then copies the expansions of their symbols. After the last row every
// sub-block must have ended exactly where its size says.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "codec/item_rows.h"
#include "codec/sub_blocks.h"
#include "codec/tadoc_codec.h"
#include "common/copy.h"
#include "common/little_endian.h"

namespace gompfs {
namespace {

struct Payload {
    std::uint32_t num_symbols;
    std::uint32_t skip;
    const std::uint8_t* stream;
    std::uint32_t stream_bits;
    SubBlockBounds bounds;

    // Reads all but the symbols. Returns false if that is not valid.
    bool read(Bytes bytes);
};

bool Payload::read(Bytes bytes) {
    if (bytes.size() < kTadocHeaderSize + kBitPadding || bytes.size() > kMaxHeadPayload) {
        return false;
    }
    num_symbols = load<std::uint32_t>(&bytes[0]);
    const auto base = load<std::uint32_t>(&bytes[4]);
    skip = load<std::uint16_t>(&bytes[8]);
    const int width = bytes[10];
    // A symbol takes at least one bit.
    if (num_symbols == 0 || num_symbols > bytes.size() * 8 || width > kMaxSizeWidth ||
        bytes[11] != 0) {
        return false;
    }
    const Bytes rest = bytes.subspan(kTadocHeaderSize);
    const Bytes sub_blocks = rest.first(rest.size() - kBitPadding);
    stream = sub_blocks.data();
    stream_bits = static_cast<std::uint32_t>(sub_blocks.size() * 8);
    return bounds.read(sub_blocks, base, width);
}

// The ranks of a payload, in order, some at a time.
class Ranks {
  public:
    Ranks(const Payload& payload, const SymbolTable& symbols)
        : payload_(payload),
          symbols_(symbols),
          positions_(payload.bounds.starts),
          num_left_(payload.num_symbols) {}

    // Decodes the next ranks; none after the last one. Returns false if a rank is too large or a
    // sub-block goes past the stream.
    bool next(std::span<const std::uint32_t>& ranks);
    // Whether every sub-block has ended where its size says.
    bool at_end() const { return num_left_ == 0 && positions_ == payload_.bounds.ends; }

  private:
    const Payload& payload_;
    const SymbolTable& symbols_;
    std::array<std::uint32_t, kNumSubBlocks> positions_;
    std::size_t num_left_;
    std::array<std::uint32_t, 32 * kNumSubBlocks> ranks_;
};

bool Ranks::next(std::span<const std::uint32_t>& ranks) {
    const std::size_t count = std::min(num_left_, ranks_.size());
    const ItemStream stream{payload_.stream, payload_.stream_bits, positions_.data()};
    num_left_ -= count;
    ranks = std::span(ranks_).first(count);
    return decode_numbers(stream, symbols_.code, std::span(ranks_).first(count)) &&
           highest_of(ranks_.data(), count) < symbols_.expansions.size();
}

// Writes expansions to the content, one after another.
class Output {
  public:
    Output(MutableBytes content, const SymbolTable& symbols)
        : start_(content.data()),
          size_(content.size()),
          pool_(symbols.pool.data()),
          expansions_(symbols.expansions.data()) {}

    // Writes the first symbol, without its first `skip` bytes. Returns false if it is not longer.
    bool begin(const Expansion& symbol, std::uint32_t skip) {
        if (symbol.size() <= skip) {
            return false;
        }
        position_ = std::size_t{symbol.size()} - skip;
        before_ = symbol;
        std::memcpy(start_, pool_ + symbol.offset() + skip, std::min(position_, size_));
        return true;
    }

    // Writes the following symbols. Returns false if one begins after the end of the content.
    bool append(std::span<const std::uint32_t> ranks);

    bool is_full() const { return position_ >= size_; }

  private:
    std::size_t append_fast(const std::uint32_t* ranks, std::size_t count);
    bool append_slowly(const Expansion& symbol);

    static_assert(kChunkSize <= SymbolTable::kPoolMargin);

    std::uint8_t* const start_;
    const std::size_t size_;
    const std::uint8_t* const pool_;
    const Expansion* const expansions_;
    std::size_t position_ = 0;  // may be after the end, after the last symbol
    Expansion before_;
};

[[gnu::noinline]] bool Output::append_slowly(const Expansion& symbol) {
    position_ -= symbol.takes_space_of(before_);
    before_ = symbol;
    if (symbol.size() == 0) {
        return true;
    }
    if (position_ >= size_) {
        return false;
    }
    std::memcpy(start_ + position_, pool_ + symbol.offset(),
                std::min<std::size_t>(symbol.size(), size_ - position_));
    position_ += symbol.size();
    return true;
}

// Writes symbols while the content has space for whole copies. Returns the number of symbols
// written.
GOMPFS_TARGET_CLONES std::size_t Output::append_fast(const std::uint32_t* ranks,
                                                     std::size_t count) {
    // Local copies stay in registers.
    const std::uint8_t* const pool = pool_;
    const Expansion* const expansions = expansions_;
    std::uint8_t* const start = start_;
    const std::size_t size = size_;
    std::size_t position = position_;
    Expansion before = before_;
    std::size_t index = 0;
    for (; index < count; ++index) {
        const Expansion symbol = expansions[ranks[index]];
        if (position + symbol.size() + kChunkSize > size) [[unlikely]] {
            break;
        }
        const std::size_t space = symbol.takes_space_of(before);
        const std::uint8_t* const source = pool + symbol.offset();
        std::uint8_t* const target = start + position - space;
        copy_chunk(target, source);
        for (std::size_t done = kChunkSize; done < symbol.size(); done += kChunkSize) [[unlikely]] {
            copy_chunk(target + done, source + done);
        }
        position += symbol.size() - space;
        before = symbol;
    }
    position_ = position;
    before_ = before;
    return index;
}

bool Output::append(std::span<const std::uint32_t> ranks) {
    const std::size_t num_fast = append_fast(ranks.data(), ranks.size());
    return std::all_of(ranks.begin() + static_cast<std::ptrdiff_t>(num_fast), ranks.end(),
                       [&](std::uint32_t rank) { return append_slowly(expansions_[rank]); });
}

// Symbols that this thread has not used just now may be far away from the processor. To fetch them
// all one after another takes less time than to wait for them one by one.
void fetch_symbols(const SymbolTable& symbols, std::size_t num_used) {
    constexpr std::size_t kLine = 64;
    constexpr std::size_t kMaxFetched = 1 << 20;  // more do not fit into the cache
    thread_local std::uint64_t last_number = 0;
    const std::size_t table_size = symbols.expansions.size() * sizeof(Expansion);
    const std::size_t size = symbols.pool.size() + table_size;
    if (symbols.number == last_number || size > kMaxFetched || size > num_used * kLine) {
        return;
    }
    last_number = symbols.number;
    const auto fetch = [](const void* bytes, std::size_t count) {
        for (std::size_t offset = 0; offset < count; offset += kLine) {
            __builtin_prefetch(static_cast<const char*>(bytes) + offset, 0, 2);
        }
    };
    fetch(symbols.expansions.data(), table_size);
    fetch(symbols.pool.data(), symbols.pool.size());
}

}  // namespace

bool decode_tadoc(Bytes bytes, const SymbolTable& symbols, MutableBytes content) {
    Payload payload;
    std::span<const std::uint32_t> next;
    if (!payload.read(bytes) || symbols.code.is_empty) {
        return false;
    }
    fetch_symbols(symbols, payload.num_symbols);
    Ranks ranks(payload, symbols);
    Output output(content, symbols);
    if (!ranks.next(next) || !output.begin(symbols.expansions[next[0]], payload.skip)) {
        return false;
    }
    for (next = next.subspan(1); !next.empty();) {
        if (!output.append(next) || !ranks.next(next)) {
            return false;
        }
    }
    return output.is_full() && ranks.at_end();
}

bool TadocRanks::read(Bytes bytes, const ClassTable& code, std::size_t num_symbols,
                      std::size_t max_ranks) {
    Payload payload;
    if (!payload.read(bytes) || code.is_empty || payload.num_symbols > max_ranks) {
        return false;
    }
    if (memory.size() < payload.num_symbols) {
        memory.resize(payload.num_symbols);
    }
    skip = payload.skip;
    const std::span<std::uint32_t> all = std::span(memory).first(payload.num_symbols);
    ranks = all;
    auto positions = payload.bounds.starts;
    const ItemStream stream{payload.stream, payload.stream_bits, positions.data()};
    return decode_numbers(stream, code, all) && positions == payload.bounds.ends &&
           highest_of(all.data(), all.size()) < num_symbols;
}

}  // namespace gompfs
