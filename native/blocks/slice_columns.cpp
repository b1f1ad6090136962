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

SliceColumns::SliceColumns(const RangePlan& plan, const SliceBlocks& blocks)
    : plan_(plan),
      blocks_(blocks),
      statuses_(blocks.indexes.size()),
      order_(blocks.indexes.size()) {
    check_sizes(blocks);
    const std::size_t count = order_.size();
    const auto is_decoded = [&](std::size_t block) {
        return statuses_[block] == 0 &&
               blocks.facts[block].codec != static_cast<std::uint32_t>(Codec::stored);
    };
    for (std::size_t block = 0; block < count; ++block) {
        const StagedBlock& facts = blocks.facts[block];
        // a block has the status of its head if that is damaged, whatever the block is like
        const std::uint8_t of_head = blocks.head_statuses[block];
        statuses_[block] = of_head != 0 ? of_head : static_cast<std::uint8_t>(facts.status);
        const auto index = static_cast<std::size_t>(blocks.indexes[block]);
        if (index >= plan.blocks().size() || facts.codec >= kNumCodecs) {
            throw std::invalid_argument("no such block or codec");
        }
        num_pieces_ += plan.first_pieces()[index + 1] - plan.first_pieces()[index];
        has_checksums_ = has_checksums_ || facts.content_xxh3 != 0;
        if (is_decoded(block)) {
            ++num_decoded_[facts.codec];
            content_size_ += round_up(facts.uncompressed_size, kContentAlignment);
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

void SliceColumns::write(MutableBytes out, std::uint64_t content) const {
    if (out.size() != size() || reinterpret_cast<std::uintptr_t>(out.data()) % 8 != 0) {
        throw std::invalid_argument("the memory for the columns has another size or alignment");
    }
    write_tasks(out, content);
    write_blocks(out);
    write_pieces(out);
}

template <typename Value>
std::span<Value> SliceColumns::column(MutableBytes out, Column number) const {
    return {reinterpret_cast<Value*>(out.data() + begins_[number]),
            num_bytes_[number] / sizeof(Value)};
}

// Writes what the decoders need of each block, and where its content will be.
void SliceColumns::write_tasks(MutableBytes out, std::uint64_t content) const {
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
        const StagedBlock& facts = blocks_.facts[block];
        payloads[position] = blocks_.payloads[block];
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

void SliceColumns::write_pieces(MutableBytes out) const {
    const auto blocks = column<std::uint32_t>(out, of_blocks);
    const auto piece_begins = column<std::uint32_t>(out, begins);
    const auto piece_sizes = column<std::uint32_t>(out, sizes);
    const auto piece_targets = column<std::uint64_t>(out, targets);
    std::size_t next = 0;
    for (std::uint32_t position = 0; position < order_.size(); ++position) {
        const auto index = static_cast<std::size_t>(blocks_.indexes[order_[position]]);
        const std::size_t end = plan_.first_pieces()[index + 1];
        for (std::size_t piece = plan_.first_pieces()[index]; piece < end; ++piece, ++next) {
            blocks[next] = position;
            piece_begins[next] = plan_.begins()[piece];
            piece_sizes[next] = plan_.sizes()[piece];
            piece_targets[next] = plan_.targets()[piece];
        }
    }
}

}  // namespace gompfs
