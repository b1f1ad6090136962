// Writes the arrays for the kernels that read a slice; see slice_columns.h.
#include "blocks/slice_columns.h"

#include <algorithm>
#include <stdexcept>

namespace gompfs {

namespace {

constexpr std::size_t kColumnAlignment = 16;
constexpr std::uint64_t kContentAlignment = 32;
constexpr std::size_t kTaskRows = 5;

constexpr std::uint64_t round_up(std::uint64_t size, std::uint64_t alignment) {
    return (size + alignment - 1) / alignment * alignment;
}

void check_sizes(const SliceBlocks& blocks) {
    for (const std::size_t size : {blocks.facts.size(), blocks.head_statuses.size(),
                                   blocks.heads.size(), blocks.payloads.size()}) {
        if (size != blocks.indexes.size()) {
            throw std::invalid_argument("each block needs a value in each column");
        }
    }
}

}  // namespace

SliceColumns::SliceColumns(const BlockPieces& pieces, const SliceBlocks& blocks, bool in_place)
    : pieces_(pieces),
      blocks_(blocks),
      in_place_(in_place),
      statuses_(blocks.indexes.size()),
      order_(blocks.indexes.size()) {
    check_sizes(blocks);
    const std::size_t count = order_.size();
    const std::size_t num_blocks = std::max<std::size_t>(pieces.first_pieces.size(), 1) - 1;
    const auto is_decoded = [&](std::size_t block) {
        return statuses_[block] == 0 &&
               blocks.facts[block].codec != static_cast<std::uint32_t>(Codec::stored);
    };
    for (std::size_t block = 0; block < count; ++block) {
        const BlockFacts& facts = blocks.facts[block];
        // a block has the status of its head if that is damaged, whatever the block is like
        const std::uint8_t of_head = blocks.head_statuses[block];
        statuses_[block] = of_head != 0 ? of_head : static_cast<std::uint8_t>(facts.status);
        const auto index = static_cast<std::size_t>(blocks.indexes[block]);
        if (index >= num_blocks || facts.codec >= kNumCodecs) {
            throw std::invalid_argument("no such block or codec");
        }
        const std::size_t first = pieces.first_pieces[index];
        const std::size_t count_of_block = pieces.first_pieces[index + 1] - first;
        has_checksums_ = has_checksums_ || facts.content_xxh3 != 0;
        if (!is_decoded(block)) {
            num_pieces_ += count_of_block;
            continue;
        }
        ++num_decoded_[facts.codec];
        if (!in_place) {
            num_pieces_ += count_of_block;
            content_size_ += round_up(facts.uncompressed_size, kContentAlignment);
        } else if (count_of_block != 1 || pieces.sizes[first] != facts.uncompressed_size ||
                   pieces.targets[first] % kContentAlignment != 0) {
            throw std::invalid_argument("a block cannot be decoded in place");
        }
    }
    std::array<std::size_t, kNumCodecs> next{};
    for (std::size_t codec = 0; codec < kNumCodecs; ++codec) {
        next[codec] = total_decoded_;
        total_decoded_ += num_decoded_[codec];
    }
    std::size_t next_other = total_decoded_;
    for (std::size_t block = 0; block < count; ++block) {
        std::size_t& position = is_decoded(block) ? next[blocks.facts[block].codec] : next_other;
        order_[position++] = static_cast<std::uint32_t>(block);
    }
    num_bytes_[tasks] = kTaskRows * total_decoded_ * sizeof(std::uint64_t);
    num_bytes_[sources] = num_bytes_[checksums] = count * sizeof(std::uint64_t);
    num_bytes_[statuses] = count;
    num_bytes_[block_sizes] = count * sizeof(std::uint32_t);
    num_bytes_[of_blocks] = num_bytes_[begins] = num_bytes_[sizes] =
        num_pieces_ * sizeof(std::uint32_t);
    num_bytes_[targets] = num_pieces_ * sizeof(std::uint64_t);
    for (std::size_t number = 1; number < num_columns; ++number) {
        begins_[number] = round_up(begins_[number - 1] + num_bytes_[number - 1], kColumnAlignment);
    }
}

std::vector<std::int64_t> SliceColumns::indexes() const {
    std::vector<std::int64_t> indexes(order_.size());
    std::transform(order_.begin(), order_.end(), indexes.begin(),
                   [this](std::uint32_t block) { return blocks_.indexes[block]; });
    return indexes;
}

void SliceColumns::write(MutableBytes out, std::uint64_t content, std::uint64_t base) const {
    if (out.size() != size() || reinterpret_cast<std::uintptr_t>(out.data()) % 8 != 0) {
        throw std::invalid_argument("the memory for the columns has another size or alignment");
    }
    write_tasks(out, content, base);
    write_blocks(out);
    write_pieces(out, base);
}

template <typename Value>
std::span<Value> SliceColumns::column(MutableBytes out, Column number) const {
    return {reinterpret_cast<Value*>(out.data() + begins_[number]),
            num_bytes_[number] / sizeof(Value)};
}

// The first piece of a block of the slice.
std::size_t SliceColumns::first_piece(std::size_t block) const {
    return pieces_.first_pieces[static_cast<std::size_t>(blocks_.indexes[block])];
}

// Writes what the decoders need of each block, and where its content will be. Five rows of 64 bits:
// the address of the payload; the offset of the content; the address of the head or dictionary;
// the size of the payload and that of the content, 32 bits each; 0, for a counter.
void SliceColumns::write_tasks(MutableBytes out, std::uint64_t content, std::uint64_t base) const {
    const auto rows = column<std::uint64_t>(out, tasks);
    const auto row = [&](std::size_t number) {
        return rows.subspan(number * total_decoded_, total_decoded_);
    };
    const auto payloads = row(0), offsets = row(1), heads = row(2), counters = row(4);
    const std::span both_sizes(reinterpret_cast<std::uint32_t*>(row(3).data()), 2 * total_decoded_);
    const auto of_sources = column<std::uint64_t>(out, sources);
    std::uint64_t offset = 0;
    for (std::size_t position = 0; position < total_decoded_; ++position) {
        const std::uint32_t block = order_[position];
        const BlockFacts& facts = blocks_.facts[block];
        payloads[position] = blocks_.payloads[block];
        if (in_place_) {
            offset = pieces_.targets[first_piece(block)] - base;
        }
        offsets[position] = offset;
        heads[position] = blocks_.heads[block];
        both_sizes[position] = facts.payload_size;
        both_sizes[total_decoded_ + position] = facts.uncompressed_size;
        of_sources[position] = content + offset;
        offset += round_up(facts.uncompressed_size, kContentAlignment);
    }
    std::fill(counters.begin(), counters.end(), 0);
    for (std::size_t position = total_decoded_; position < order_.size(); ++position) {
        of_sources[position] = blocks_.payloads[order_[position]];
    }
}

void SliceColumns::write_blocks(MutableBytes out) const {
    const auto of_statuses = column<std::uint8_t>(out, statuses);
    const auto of_sizes = column<std::uint32_t>(out, block_sizes);
    const auto of_checksums = column<std::uint64_t>(out, checksums);
    for (std::size_t position = 0; position < order_.size(); ++position) {
        const std::uint32_t block = order_[position];
        of_statuses[position] = statuses_[block];
        of_sizes[position] = blocks_.facts[block].uncompressed_size;
        of_checksums[position] = blocks_.facts[block].content_xxh3;
    }
}

void SliceColumns::write_pieces(MutableBytes out, std::uint64_t base) const {
    const auto blocks = column<std::uint32_t>(out, of_blocks);
    const auto piece_begins = column<std::uint32_t>(out, begins);
    const auto piece_sizes = column<std::uint32_t>(out, sizes);
    const auto piece_targets = column<std::uint64_t>(out, targets);
    std::size_t next = 0;
    const auto first = static_cast<std::uint32_t>(in_place_ ? total_decoded_ : 0);
    for (std::uint32_t position = first; position < order_.size(); ++position) {
        const auto index = static_cast<std::size_t>(blocks_.indexes[order_[position]]);
        const std::size_t end = pieces_.first_pieces[index + 1];
        for (std::size_t piece = pieces_.first_pieces[index]; piece < end; ++piece, ++next) {
            blocks[next] = position;
            piece_begins[next] = pieces_.begins[piece];
            piece_sizes[next] = pieces_.sizes[piece];
            piece_targets[next] = pieces_.targets[piece] - base;
        }
    }
}

}  // namespace gompfs
