// The Python module gompfs._codec: batches of blocks on several threads, with the GIL released.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "codec/block.h"
#include "codec/codec.h"
#include "common/buffer_view.h"
#include "common/parallel.h"
#include "format_constants.h"

namespace nb = nanobind;

namespace gompfs {
namespace {

nb::list encode_blocks(nb::handle stream, std::size_t block_size, int codec, int level,
                       bool dependency_elimination, unsigned num_threads) {
    const BufferView view(stream, PyBUF_SIMPLE);
    const Bytes bytes = view.bytes();
    if (block_size == 0 || block_size > kMaxBlockSize) {
        throw nb::value_error("block_size is out of bounds");
    }
    const std::size_t num_blocks = (bytes.size() + block_size - 1) / block_size;
    const EncodeOptions options{static_cast<Codec>(codec), level, dependency_elimination};
    std::vector<std::vector<std::uint8_t>> blocks(num_blocks);
    {
        nb::gil_scoped_release release;
        parallel_for(num_blocks, num_threads, [&](std::size_t index) {
            const std::size_t start = index * block_size;
            const Bytes content = bytes.subspan(start, std::min(block_size, bytes.size() - start));
            blocks[index] = encode_block(content, options);
        });
    }
    nb::list result;
    for (const auto& block : blocks) {
        result.append(nb::bytes(block.data(), block.size()));
    }
    return result;
}

struct DecodeJob {
    Bytes block;
    std::optional<BlockHeader> header;
    MutableBytes content;
    BlockStatus status = BlockStatus::bad_header;
};

// Each block with its header and its place in out, one place behind the other.
std::vector<DecodeJob> place_blocks(const std::vector<BufferView>& views, MutableBytes out) {
    std::vector<DecodeJob> jobs;
    jobs.reserve(views.size());
    std::size_t total = 0;
    for (const BufferView& view : views) {
        const auto header = parse_block_header(view.bytes());
        const std::size_t size = header ? header->uncompressed_size : 0;
        const bool fits = total + size <= out.size();
        jobs.push_back({view.bytes(), header, fits ? out.subspan(total, size) : MutableBytes()});
        total += size;
    }
    if (total > out.size()) {
        throw std::invalid_argument("the blocks hold " + std::to_string(total) +
                                    " bytes, the output only " + std::to_string(out.size()));
    }
    return jobs;
}

nb::bytes decode_blocks(nb::sequence blocks, nb::handle out, bool verify, unsigned num_threads) {
    const BufferView out_view(out, PyBUF_WRITABLE);
    std::vector<BufferView> views;
    views.reserve(nb::len(blocks));
    for (nb::handle block : blocks) {
        views.emplace_back(block, PyBUF_SIMPLE);
    }
    std::vector<DecodeJob> jobs = place_blocks(views, out_view.mutable_bytes());
    {
        nb::gil_scoped_release release;
        parallel_for(jobs.size(), num_threads, [&](std::size_t index) {
            DecodeJob& job = jobs[index];
            if (job.header) {
                job.status = decode_block(*job.header, job.block, verify, job.content);
            }
        });
    }
    std::string statuses;
    for (const DecodeJob& job : jobs) {
        statuses.push_back(static_cast<char>(job.status));
    }
    return nb::bytes(statuses.data(), statuses.size());
}

bool decode_payload_into(int codec, nb::handle payload, nb::handle out) {
    const BufferView payload_view(payload, PyBUF_SIMPLE);
    const BufferView out_view(out, PyBUF_WRITABLE);
    const nb::gil_scoped_release release;
    return decode_payload(static_cast<Codec>(codec), payload_view.bytes(),
                          out_view.mutable_bytes());
}

}  // namespace

NB_MODULE(_codec, module) {
    using namespace nb::literals;
    module.doc() = "Native codecs: batches of blocks, decoded and encoded on several threads.";
    module.def("encode_blocks", &encode_blocks, "stream"_a, "block_size"_a, "codec"_a, "level"_a,
               "dependency_elimination"_a, "num_threads"_a);
    module.def("decode_blocks", &decode_blocks, "blocks"_a, "out"_a, "verify"_a, "num_threads"_a);
    module.def("decode_payload", &decode_payload_into, "codec"_a, "payload"_a, "out"_a);
}

}  // namespace gompfs
