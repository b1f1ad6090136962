// Implements BlockReader::decode_ranges; see block_reader.h and range_plan.h.
//
// Threads share the blocks of the plan. A block that is one piece of the output is decoded straight
// into it; of any other, the pieces are copied.
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "blocks/block_reader.h"
#include "blocks/first_problem.h"
#include "common/parallel.h"

namespace gompfs {

namespace {

using Reason = ReadFailure::Reason;

constexpr std::uint64_t kGroupsPerThread = 4;  // so that threads end at about the same time

// The pieces of a plan, and the output that they go to.
class PiecesInOutput {
  public:
    PiecesInOutput(const RangePlan& plan, MutableBytes out) : plan_(plan), out_(out) {}

    // The memory of a block of `size` bytes in the output if it is one piece there; empty if not.
    MutableBytes memory_of(std::size_t block, std::size_t size) const {
        const std::uint32_t piece = plan_.first_pieces()[block];
        const bool is_one = plan_.first_pieces()[block + 1] == piece + 1 &&
                            plan_.begins()[piece] == 0 && plan_.sizes()[piece] == size;
        return is_one ? out_.subspan(plan_.targets()[piece], size) : MutableBytes();
    }

    // Copies the pieces of a block, unless it was decoded into the output.
    ReadFailure copy(std::size_t block, Bytes content) const {
        const std::uint32_t end = plan_.first_pieces()[block + 1];
        for (std::uint32_t piece = plan_.first_pieces()[block]; piece < end; ++piece) {
            const std::size_t begin = plan_.begins()[piece], size = plan_.sizes()[piece];
            if (begin + size > content.size()) {
                return {Reason::outside_segment, plan_.blocks()[block]};
            }
            std::uint8_t* const target = out_.data() + plan_.targets()[piece];
            if (target != content.data() + begin) {
                std::memcpy(target, content.data() + begin, size);
            }
        }
        return {};
    }

  private:
    const RangePlan& plan_;
    const MutableBytes out_;
};

}  // namespace

ReadFailure BlockReader::decode_blocks(std::uint64_t first, std::span<const std::uint32_t> sizes,
                                       MutableBytes out, unsigned num_threads) {
    std::vector<std::uint64_t> numbers(sizes.size()), offsets(sizes.size());
    std::iota(numbers.begin(), numbers.end(), first);
    std::exclusive_scan(sizes.begin(), sizes.end(), offsets.begin(), std::uint64_t{0});
    if (first + sizes.size() > num_blocks_ ||
        (!sizes.empty() && offsets.back() + sizes.back() > out.size())) {
        throw std::invalid_argument("there are not as many blocks, or the output is too small");
    }
    const std::shared_ptr<BlockSource> source = this->source();
    if (!source) {
        throw std::invalid_argument("there is no source");
    }
    const std::size_t group = source->max_run();
    FirstProblem problem;
    parallel_for((numbers.size() + group - 1) / group, num_threads, [&](std::size_t index) {
        if (problem.is_set()) {
            return;
        }
        const std::size_t begin = index * group;
        const std::size_t count = std::min(group, numbers.size() - begin);
        problem.watch([&] {
            return source->decode_each(
                std::span(numbers).subspan(begin, count),
                [&](std::size_t block, std::size_t size) {
                    return out.subspan(offsets[begin + block], size);
                },
                [&](std::size_t block, Bytes content) {
                    return content.size() == sizes[begin + block]
                               ? ReadFailure{}
                               : ReadFailure{Reason::outside_segment, numbers[begin + block]};
                });
        });
    });
    return problem.get();
}

ReadFailure BlockReader::decode_ranges(const RangePlan& plan, MutableBytes out,
                                       unsigned num_threads, bool use_source) {
    if (out.size() != static_cast<std::uint64_t>(plan.offsets().back())) {
        throw std::invalid_argument("the output does not have the size of the ranges");
    }
    for (const auto [target, size] : plan.holes()) {
        std::memset(out.data() + target, 0, size);
    }
    if (plan.blocks().empty()) {
        return {};
    }
    const std::shared_ptr<BlockSource> source = this->source();
    if (source && use_source) {
        return decode_pieces(*source, plan, out, num_threads);
    }
    return decoder_ ? decode_pieces(*decoder_, plan, out, num_threads)
                    : ReadFailure{Reason::missing_block, plan.blocks()[0]};
}

ReadFailure BlockReader::decode_pieces(BlockSource& source, const RangePlan& plan, MutableBytes out,
                                       unsigned num_threads) {
    const PiecesInOutput pieces(plan, out);
    const std::size_t num_blocks = plan.blocks().size();
    const std::size_t wanted = num_blocks / (kGroupsPerThread * std::max(num_threads, 1u));
    const std::size_t group = std::clamp<std::size_t>(wanted, 1, source.max_run());
    FirstProblem problem;
    parallel_for((num_blocks + group - 1) / group, num_threads, [&](std::size_t index) {
        if (problem.is_set()) {
            return;
        }
        const std::size_t first = index * group;
        const auto numbers =
            std::span(plan.blocks()).subspan(first, std::min(group, num_blocks - first));
        thread_local std::vector<std::uint8_t> scratch;
        problem.watch([&] {
            return source.decode_each(
                numbers,
                [&](std::size_t block, std::size_t size) {
                    if (const MutableBytes memory = pieces.memory_of(first + block, size);
                        !memory.empty()) {
                        return memory;
                    }
                    scratch.resize(std::max(scratch.size(), size));
                    return MutableBytes(scratch).first(size);
                },
                [&](std::size_t block, Bytes content) {
                    return pieces.copy(first + block, content);
                });
        });
    });
    return problem.get();
}

ReadFailure BlockReader::decode_pieces(BlockDecoder& decoder, const RangePlan& plan,
                                       MutableBytes out, unsigned num_threads) {
    const PiecesInOutput pieces(plan, out);
    const std::size_t num_blocks = plan.blocks().size();
    const std::size_t step = std::max<std::uint64_t>(decoder.batch_bytes / block_size_, 1);
    FirstProblem problem;
    for (std::size_t first = 0; first < num_blocks && !problem.is_set(); first += step) {
        const auto begin = plan.blocks().begin() + static_cast<std::ptrdiff_t>(first);
        const std::vector<std::uint64_t> numbers(
            begin, begin + static_cast<std::ptrdiff_t>(std::min(step, num_blocks - first)));
        decoder.decode(numbers, [&](std::span<const BlockDecoder::Decoded> decoded) {
            parallel_for(decoded.size(), num_threads, [&](std::size_t index) {
                const auto [content, status] = decoded[index];
                const ReadFailure failure =
                    status == BlockStatus::ok
                        ? pieces.copy(first + index, content)
                        : ReadFailure{Reason::damaged_block, numbers[index], status};
                if (failure) {
                    problem.set(failure, nullptr);
                }
            });
        });
    }
    return problem.get();
}

}  // namespace gompfs
