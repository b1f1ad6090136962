// Reads and checks blocks on several threads; see staged_blocks.h. Blocks that follow each other in
// the file are read by one system call, which scatters them to their targets.
#include "blocks/staged_blocks.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "common/read_fully.h"

namespace gompfs {

namespace {

constexpr std::size_t kGroup = 8;  // blocks that one thread reads at once

MutableBytes memory_of(const WantedBlock& block, MutableBytes out) {
    return out.subspan(block.target, block.compressed_size);
}

// Reads blocks that follow each other in the file. Returns the number of whole blocks.
std::size_t read_from_file(int descriptor, std::span<const WantedBlock> run, MutableBytes out) {
    std::array<iovec, kGroup> targets;
    std::size_t size = 0;
    for (std::size_t index = 0; index < run.size(); ++index) {
        targets[index] = {memory_of(run[index], out).data(), run[index].compressed_size};
        size += run[index].compressed_size;
    }
    ssize_t count;
    do {
        count = ::preadv(descriptor, targets.data(), static_cast<int>(run.size()),
                         static_cast<off_t>(run[0].archive_offset));
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
        throw std::system_error(errno, std::generic_category());
    }
    if (static_cast<std::size_t>(count) == size) {
        return run.size();
    }
    // The call was cut short, or the file ends here: read the blocks one by one.
    std::size_t whole = 0;
    while (whole < run.size()) {
        const MutableBytes memory = memory_of(run[whole], out);
        if (read_fully(descriptor, memory, run[whole].archive_offset) < memory.size()) {
            break;
        }
        ++whole;
    }
    return whole;
}

// A stored block is copied without a decoder, which would find out that its payload is too short.
BlockStatus status_of(const BlockHeader& header, Bytes block) {
    const BlockStatus status = check_block(header, block);
    const bool is_short =
        header.codec == Codec::stored && header.payload_size != header.uncompressed_size;
    return status == BlockStatus::ok && is_short ? BlockStatus::bad_payload : status;
}

BlockFacts check(const WantedBlock& wanted, Bytes block) {
    const auto header = parse_block_header(block);
    BlockStatus status = BlockStatus::bad_header;
    if (header && header->uncompressed_size == wanted.uncompressed_size &&
        is_allowed(header->codec, wanted.supplement)) {
        status = status_of(*header, block);
    }
    if (status != BlockStatus::ok) {
        return {static_cast<std::uint32_t>(status), 0, 0, 0, 0, 0};
    }
    return {static_cast<std::uint32_t>(status),
            static_cast<std::uint32_t>(header->codec),
            header->payload_size,
            header->uncompressed_size,
            header->content_xxh3,
            header->block_xxh3};
}

// The number of blocks at the start of `group` that follow each other in the file.
std::size_t length_of_run(std::span<const WantedBlock> group) {
    std::size_t length = 1;
    while (length < group.size() &&
           group[length].archive_offset ==
               group[length - 1].archive_offset + group[length - 1].compressed_size) {
        ++length;
    }
    return length;
}

void check_targets(std::span<const WantedBlock> blocks, MutableBytes out) {
    for (const WantedBlock& block : blocks) {
        if (block.target > out.size() || block.compressed_size > out.size() - block.target) {
            throw std::invalid_argument("a block does not fit into the memory");
        }
    }
}

void check_memory(std::span<const WantedBlock> blocks, std::span<const Bytes> memory) {
    const auto has_size = [](const WantedBlock& block, Bytes bytes) {
        return bytes.size() == block.compressed_size;
    };
    if (!std::equal(blocks.begin(), blocks.end(), memory.begin(), memory.end(), has_size)) {
        throw std::invalid_argument("a block has another size");
    }
}

}  // namespace

BlockStaging::BlockStaging(Descriptor file, std::span<const Bytes> memory,
                           std::vector<WantedBlock> blocks, MutableBytes out, unsigned num_threads)
    : file_(std::move(file)),
      memory_(memory),
      blocks_(std::move(blocks)),
      out_(out),
      staged_(blocks_.size()) {
    check_targets(blocks_, out);
    if (file_.number() < 0) {
        check_memory(blocks_, memory_);
    }
    loop_.emplace((blocks_.size() + kGroup - 1) / kGroup, num_threads, Stage{*this});
}

const std::vector<BlockFacts>& BlockStaging::wait() {
    loop_->wait();
    return staged_;
}

// Reads or copies blocks to their targets. Returns the number of whole blocks.
std::size_t BlockStaging::read_run(std::size_t first, std::span<const WantedBlock> run) const {
    if (file_.number() >= 0) {
        return read_from_file(file_.number(), run, out_);
    }
    for (std::size_t index = 0; index < run.size(); ++index) {
        const Bytes bytes = memory_[first + index];
        std::copy(bytes.begin(), bytes.end(), memory_of(run[index], out_).begin());
    }
    return run.size();
}

void BlockStaging::stage_group(std::size_t group) {
    const std::size_t end = std::min((group + 1) * kGroup, blocks_.size());
    for (std::size_t first = group * kGroup; first < end;) {
        const auto rest = std::span(blocks_).subspan(first, end - first);
        const auto run = rest.first(length_of_run(rest));
        const std::size_t whole = read_run(first, run);
        for (std::size_t index = 0; index < run.size(); ++index) {
            const Bytes block = index < whole ? Bytes(memory_of(run[index], out_)) : Bytes();
            staged_[first + index] = check(run[index], block);
        }
        first += run.size();
    }
}

}  // namespace gompfs
