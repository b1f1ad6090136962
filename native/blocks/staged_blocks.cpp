// Reads and checks blocks on several threads; see staged_blocks.h. Blocks that follow each other in
// the file are read by one system call, which scatters them to their targets.
#include "blocks/staged_blocks.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <stdexcept>
#include <system_error>

#include "blocks/first_problem.h"
#include "common/parallel.h"
#include "common/read_fully.h"

namespace gompfs {

namespace {

constexpr std::size_t kGroup = 16;  // blocks that one thread reads at once

MutableBytes memory_of(const WantedBlock& block, MutableBytes out) {
    return out.subspan(block.target, block.compressed_size);
}

// Reads blocks that follow each other in the file. Returns the number of whole blocks.
std::size_t read_run(int descriptor, std::span<const WantedBlock> run, MutableBytes out) {
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

StagedBlock check(const WantedBlock& wanted, Bytes block) {
    const auto header = parse_block_header(block);
    BlockStatus status = BlockStatus::bad_header;
    if (header && header->uncompressed_size == wanted.uncompressed_size &&
        is_allowed(header->codec, wanted.supplement)) {
        status = status_of(*header, block);
    }
    if (status != BlockStatus::ok) {
        return {.status = static_cast<std::uint32_t>(status)};
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

void stage_group(std::optional<int> descriptor, std::span<const WantedBlock> group,
                 MutableBytes out, std::span<StagedBlock> staged) {
    for (std::size_t first = 0; first < group.size();) {
        const auto run = group.subspan(first, length_of_run(group.subspan(first)));
        const std::size_t whole = descriptor ? read_run(*descriptor, run, out) : run.size();
        for (std::size_t index = 0; index < run.size(); ++index) {
            const Bytes block = index < whole ? Bytes(memory_of(run[index], out)) : Bytes();
            staged[first + index] = check(run[index], block);
        }
        first += run.size();
    }
}

}  // namespace

std::vector<StagedBlock> stage_blocks(std::optional<int> descriptor,
                                      std::span<const WantedBlock> blocks, MutableBytes out,
                                      unsigned num_threads) {
    for (const WantedBlock& block : blocks) {
        if (block.target > out.size() || block.compressed_size > out.size() - block.target) {
            throw std::invalid_argument("a block does not fit into the memory");
        }
    }
    std::vector<StagedBlock> staged(blocks.size());
    FirstProblem problem;
    parallel_for((blocks.size() + kGroup - 1) / kGroup, num_threads, [&](std::size_t index) {
        const std::size_t first = index * kGroup;
        const std::size_t count = std::min(kGroup, blocks.size() - first);
        problem.watch([&] {
            stage_group(descriptor, blocks.subspan(first, count), out,
                        std::span(staged).subspan(first, count));
            return ReadFailure();
        });
    });
    problem.get();
    return staged;
}

}  // namespace gompfs
