// Decodes a payload of gompresso-tadoc on one thread; see tadoc_codec.h.
//
// On a GPU each lane of a warp decodes one sub-block. Here one thread visits the 32 sub-blocks in
// turn, one symbol per visit, and then copies the 32 expansions of the row. Neighbouring visits do
// not depend on each other, so the processor executes them in parallel. Reads past the end of a
// sub-block are harmless, because the payload ends with padding and a row that goes past the stream
// is the last one that is decoded. After the last row every sub-block must have ended exactly where
// its size says.
#include <algorithm>
#include <array>
#include <cstring>

#include "codec/copy.h"
#include "codec/sub_blocks.h"
#include "codec/tadoc_codec.h"
#include "common/little_endian.h"

namespace gompfs {
namespace {

using Row = std::array<std::uint32_t, kNumSubBlocks>;  // the rank of the next symbol of each lane

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

// Decodes the next symbol of the first `count` lanes. Returns false if a rank is too large or a lane
// goes past the stream.
GOMPFS_TARGET_CLONES bool decode_row(const Payload& payload, const ClassTable& code,
                                     std::size_t num_ranks, std::uint32_t* positions, int count,
                                     std::uint32_t* row) {
    const std::uint64_t* const entries = code.entries.data();
    const std::uint64_t index_mask = (std::uint64_t{1} << code.index_bits) - 1;
    std::uint32_t farthest = 0, highest = 0;
    for (int lane = 0; lane < count; ++lane) {
        const std::uint32_t position = positions[lane];
        const std::uint64_t window =
            load<std::uint64_t>(payload.stream + (position >> 3)) >> (position & 7);
        const std::uint64_t entry = entries[window & index_mask];
        const std::uint32_t rank =
            static_cast<std::uint32_t>(entry >> 32) +
            static_cast<std::uint32_t>(low_bits(window >> (entry & 63), entry >> 8 & 63));
        positions[lane] = position + static_cast<std::uint32_t>(entry >> 16 & 255);
        row[lane] = rank;
        farthest = std::max(farthest, positions[lane]);
        highest = std::max(highest, rank);
    }
    return farthest <= payload.stream_bits && highest < num_ranks;
}

// Writes expansions to the content, one after another.
class Output {
  public:
    Output(MutableBytes content, const SymbolTable& symbols)
        : start_(content.data()), size_(content.size()), pool_(symbols.pool.data()) {}

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
    bool append(const std::uint32_t* ranks, int count, const Expansion* expansions);

    bool is_full() const { return position_ >= size_; }

  private:
    bool append_slowly(const Expansion& symbol);

    static constexpr std::size_t kFastSize = 32;

    std::uint8_t* const start_;
    const std::size_t size_;
    const std::uint8_t* const pool_;
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

bool Output::append(const std::uint32_t* ranks, int count, const Expansion* expansions) {
    // Local copies stay in registers.
    const std::uint8_t* const pool = pool_;
    std::uint8_t* const start = start_;
    for (int lane = 0; lane < count; ++lane) {
        std::size_t position = position_;
        Expansion before = before_;
        for (; lane < count; ++lane) {
            const Expansion symbol = expansions[ranks[lane]];
            if (position + kFastSize > size_ || symbol.size() > kFastSize) [[unlikely]] {
                break;
            }
            position -= symbol.takes_space_of(before);
            copy_fixed<16>(start + position, pool + symbol.offset());
            copy_fixed<16>(start + position + 16, pool + symbol.offset() + 16);
            position += symbol.size();
            before = symbol;
        }
        position_ = position;
        before_ = before;
        if (lane < count && !append_slowly(expansions[ranks[lane]])) {
            return false;
        }
    }
    return true;
}

}  // namespace

bool decode_tadoc(Bytes bytes, const SymbolTable& symbols, MutableBytes content) {
    Payload payload;
    if (!payload.read(bytes) || symbols.code.is_empty) {
        return false;
    }
    auto positions = payload.bounds.starts;
    Row row;
    Output output(content, symbols);
    for (std::uint32_t first = 0; first < payload.num_symbols; first += kNumSubBlocks) {
        const int count =
            static_cast<int>(std::min<std::uint32_t>(kNumSubBlocks, payload.num_symbols - first));
        if (!decode_row(payload, symbols.code, symbols.expansions.size(), positions.data(), count,
                        row.data())) {
            return false;
        }
        const int num_begun = first == 0 ? 1 : 0;
        if (num_begun != 0 && !output.begin(symbols.expansions[row[0]], payload.skip)) {
            return false;
        }
        if (!output.append(row.data() + num_begun, count - num_begun, symbols.expansions.data())) {
            return false;
        }
    }
    return output.is_full() && positions == payload.bounds.ends;
}

bool decode_tadoc_ranks(Bytes bytes, const SymbolTable& symbols,
                        std::vector<std::uint32_t>& ranks) {
    Payload payload;
    if (!payload.read(bytes) || symbols.code.is_empty) {
        return false;
    }
    auto positions = payload.bounds.starts;
    Row row;
    for (std::uint32_t first = 0; first < payload.num_symbols; first += kNumSubBlocks) {
        const int count =
            static_cast<int>(std::min<std::uint32_t>(kNumSubBlocks, payload.num_symbols - first));
        if (!decode_row(payload, symbols.code, symbols.expansions.size(), positions.data(), count,
                        row.data())) {
            return false;
        }
        const int num_dropped = first == 0 && payload.skip != 0 ? 1 : 0;
        ranks.insert(ranks.end(), row.begin() + num_dropped, row.begin() + count);
    }
    return positions == payload.bounds.ends;
}

}  // namespace gompfs
