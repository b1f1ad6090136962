// Copies, launches and checks of a small batch; see small_batches.h.
//
// The input of a launch is one piece of memory, the same in pinned and in device memory: the
// columns that the kernels read, in the order of the codecs, then the payloads. The kernels write
// the statuses directly to the start of the pinned output.
#include "gpu/small_batches.h"

#include <algorithm>
#include <cstring>

#include "common/parallel.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

constexpr std::size_t kPayloadAlignment = 16;
constexpr std::size_t kOutputAlignment = 32;
constexpr std::size_t kPadding = 256;  // kernels may read this many bytes past the last payload
constexpr std::uint32_t kMaxWideSize = 65536;  // of a block; kWideBlockSize of the kernels

constexpr std::size_t align(std::size_t size, std::size_t alignment) {
    return (size + alignment - 1) / alignment * alignment;
}

// The number of a codec's kernel, or nothing if there is none.
std::optional<std::size_t> kernel_of(std::uint32_t codec) {
    const std::size_t number = codec - 1;
    return codec != 0 && number < kNumWideKernels ? std::optional(number) : std::nullopt;
}

// Counts a batch, also one that fails.
class CountedBatch {
  public:
    explicit CountedBatch(DecodeWork& work) : work_(work) { work_.begin(); }
    ~CountedBatch() { work_.end(num_blocks_, num_bytes_); }
    CountedBatch(const CountedBatch&) = delete;
    CountedBatch& operator=(const CountedBatch&) = delete;

    void finish(std::size_t num_blocks, std::size_t num_bytes) {
        num_blocks_ = num_blocks;
        num_bytes_ = num_bytes;
    }

  private:
    DecodeWork& work_;
    std::size_t num_blocks_ = 0;
    std::size_t num_bytes_ = 0;
};

}  // namespace

// The layout of a batch. Columns are in the order of `order`; offsets are in bytes.
struct SmallBatches::Plan {
    std::vector<BlockFacts> facts;                        // per block
    std::vector<std::size_t> order;                       // indexes of blocks, by codec
    std::array<std::size_t, kNumWideKernels> num_blocks;  // per kernel
    std::vector<std::uint64_t> payload_offsets;           // per block, in the input
    std::vector<std::uint64_t> output_offsets;            // per block, in the device's output
    std::vector<std::uint64_t> out_offsets;               // per block, in the caller's memory
    std::size_t size = 0;                                 // of all contents
    std::size_t input_size = 0;
    std::size_t statuses_size = 0;

    std::size_t count() const { return order.size(); }
    // Whether blocks follow each other on the device as they do in the caller's memory.
    bool is_contiguous() const {
        return output_offsets.back() - output_offsets[0] == out_offsets.back();
    }
    // Offsets of the columns in the input.
    std::size_t output_column() const { return count() * 8; }
    std::size_t payload_size_column() const { return count() * 16; }
    std::size_t output_size_column() const { return count() * 20; }
    std::size_t counters() const { return count() * 24; }
    std::size_t columns_size() const {
        return align(counters() + kNumWideKernels * 4, kPayloadAlignment);
    }
};

SmallBatches::SmallBatches(const CudaDriver& driver,
                           const std::array<WideKernel, kNumWideKernels>& kernels,
                           const SmallBatchMemory& memory, std::size_t max_blocks)
    : driver_(driver), kernels_(kernels), memory_(memory), max_blocks_(max_blocks) {}

std::optional<SmallBatches::Plan> SmallBatches::plan(
    std::span<const Bytes> blocks, MutableBytes out,
    std::optional<std::span<const std::uint32_t>> sizes) const {
    if (blocks.empty() || blocks.size() > max_blocks_ ||
        (sizes && sizes->size() != blocks.size())) {
        return std::nullopt;
    }
    Plan plan;
    std::array<std::vector<std::size_t>, kNumWideKernels> of_kernel;
    for (const Bytes block : blocks) {
        const BlockFacts facts = read_facts(block);
        const std::size_t index = plan.facts.size();
        const auto kernel = kernel_of(facts.codec);
        if (static_cast<BlockStatus>(facts.status) != BlockStatus::ok || !kernel ||
            facts.uncompressed_size > kMaxWideSize ||
            (sizes && (*sizes)[index] != facts.uncompressed_size)) {
            return std::nullopt;
        }
        plan.facts.push_back(facts);
        plan.out_offsets.push_back(plan.size);
        of_kernel[*kernel].push_back(index);
        plan.size += facts.uncompressed_size;
    }
    for (std::size_t kernel = 0; kernel < kNumWideKernels; ++kernel) {
        plan.num_blocks[kernel] = of_kernel[kernel].size();
        plan.order.insert(plan.order.end(), of_kernel[kernel].begin(), of_kernel[kernel].end());
    }
    plan.input_size = plan.columns_size();
    plan.statuses_size = align(plan.count(), kOutputAlignment);
    std::size_t output_size = plan.statuses_size;
    for (const BlockFacts& facts : plan.facts) {
        plan.payload_offsets.push_back(plan.input_size);
        plan.output_offsets.push_back(output_size);
        plan.input_size += align(facts.payload_size, kPayloadAlignment);
        output_size += align(facts.uncompressed_size, kOutputAlignment);
    }
    const bool fits = plan.size <= out.size() && output_size <= memory_.pinned_output.size() &&
                      plan.input_size + kPadding <= memory_.pinned_input.size();
    return fits ? std::optional(plan) : std::nullopt;
}

// Checks the payloads and copies them to pinned memory, with the columns before them.
void SmallBatches::stage(const Plan& plan, std::span<const Bytes> blocks,
                         std::vector<BlockStatus>& statuses, unsigned num_threads) const {
    const auto bytes_of = [](const auto& column) {
        return Bytes(reinterpret_cast<const std::uint8_t*>(column.data()),
                     column.size() * sizeof column[0]);
    };
    statuses = gather_payloads(blocks, bytes_of(plan.facts), bytes_of(plan.payload_offsets),
                               memory_.pinned_input, num_threads);
    std::uint8_t* const input = memory_.pinned_input.data();
    const auto store = [input](std::size_t column, std::size_t row, auto value) {
        std::memcpy(input + column + row * sizeof value, &value, sizeof value);
    };
    for (std::size_t row = 0; row < plan.count(); ++row) {
        const std::size_t index = plan.order[row];
        const BlockFacts& facts = plan.facts[index];
        // A payload size of 0 makes the kernel refuse a block that is damaged already.
        const bool is_intact = statuses[index] == BlockStatus::ok;
        store(0, row, plan.payload_offsets[index]);
        store(plan.output_column(), row, plan.output_offsets[index]);
        store(plan.payload_size_column(), row, is_intact ? facts.payload_size : 0u);
        store(plan.output_size_column(), row, facts.uncompressed_size);
    }
    for (std::size_t kernel = 0; kernel < kNumWideKernels; ++kernel) {
        store(plan.counters(), kernel, 0u);
    }
}

// Starts the kernels, which write block i at target + plan.output_offsets[i].
void SmallBatches::launch(const Plan& plan, std::uint64_t target) const {
    const std::uint64_t input = memory_.device_input;
    std::size_t first = 0;
    for (std::size_t kernel = 0; kernel < kNumWideKernels; ++kernel) {
        auto num_blocks = static_cast<unsigned>(plan.num_blocks[kernel]);
        if (num_blocks == 0) {
            continue;
        }
        std::uint64_t compressed = input;
        std::uint64_t payload_offsets = input + first * 8;
        std::uint64_t payload_sizes = input + plan.payload_size_column() + first * 4;
        std::uint64_t output = memory_.device_output;
        std::uint64_t output_offsets = input + plan.output_column() + first * 8;
        std::uint64_t output_sizes = input + plan.output_size_column() + first * 4;
        const std::uint8_t* statuses = memory_.pinned_output.data() + first;
        std::uint64_t next_block = input + plan.counters() + kernel * 4;
        void* arguments[] = {&compressed,     &payload_offsets, &payload_sizes, &output,
                             &output_offsets, &output_sizes,    &statuses,      &next_block,
                             &num_blocks,     &target};
        const WideKernel& wide = kernels_[kernel];
        driver_.launch(wide.function, num_blocks, wide.num_threads, wide.shared_bytes,
                       memory_.stream, arguments);
        first += num_blocks;
    }
}

// Copies the output to the caller's memory and waits for it. Blocks that are adjacent in both are
// copied together.
void SmallBatches::fetch(const Plan& plan, MutableBytes out, bool is_pinned,
                         unsigned num_threads) const {
    for (std::size_t first = 0; first < plan.count();) {
        std::size_t last = first + 1;
        std::size_t size = plan.facts[first].uncompressed_size;
        while (last < plan.count() &&
               plan.output_offsets[last] == plan.output_offsets[first] + size) {
            size += plan.facts[last++].uncompressed_size;
        }
        const std::uint64_t offset = plan.output_offsets[first];
        std::uint8_t* const target = is_pinned ? out.data() + plan.out_offsets[first]
                                               : memory_.pinned_output.data() + offset;
        driver_.copy_to_host(target, memory_.device_output + offset, size, memory_.stream);
        first = last;
    }
    driver_.synchronize(memory_.stream);
    parallel_for(is_pinned ? 0 : plan.count(), num_threads, [&](std::size_t index) {
        const Bytes content = memory_.pinned_output.subspan(plan.output_offsets[index],
                                                            plan.facts[index].uncompressed_size);
        std::copy(content.begin(), content.end(), out.data() + plan.out_offsets[index]);
    });
}

std::optional<std::vector<BlockStatus>> SmallBatches::decode(
    std::span<const Bytes> blocks, MutableBytes out,
    std::optional<std::span<const std::uint32_t>> sizes, bool verify, unsigned num_threads,
    DecodeWork& work) {
    const auto plan = this->plan(blocks, out, sizes);
    if (!plan) {
        return std::nullopt;
    }
    CountedBatch counted(work);
    std::vector<BlockStatus> statuses;
    stage(*plan, blocks, statuses, num_threads);
    const CurrentContext current(driver_, memory_.context);
    driver_.copy_to_device(memory_.device_input, memory_.pinned_input.data(), plan->input_size,
                           memory_.stream);
    const bool is_pinned = driver_.is_pinned(out.data());
    if (is_pinned && plan->is_contiguous() &&
        reinterpret_cast<std::uintptr_t>(out.data()) % sizeof(std::uint64_t[2]) == 0) {
        launch(*plan, reinterpret_cast<std::uint64_t>(out.data()) - plan->output_offsets[0]);
        driver_.synchronize(memory_.stream);
    } else {
        launch(*plan, memory_.device_output);
        fetch(*plan, out, is_pinned, num_threads);
    }
    for (std::size_t row = 0; row < plan->count(); ++row) {
        BlockStatus& status = statuses[plan->order[row]];
        if (status == BlockStatus::ok) {
            status = static_cast<BlockStatus>(memory_.pinned_output[row]);
        }
    }
    parallel_for(plan->count(), num_threads, [&](std::size_t index) {
        const MutableBytes content =
            out.subspan(plan->out_offsets[index], plan->facts[index].uncompressed_size);
        if (statuses[index] == BlockStatus::ok && verify &&
            !is_content(*parse_block_header(blocks[index]), content)) {
            statuses[index] = BlockStatus::bad_content;
        }
        if (statuses[index] != BlockStatus::ok) {
            std::fill(content.begin(), content.end(), std::uint8_t{0});
        }
    });
    counted.finish(plan->count(), plan->size);
    return statuses;
}

}  // namespace gompfs
