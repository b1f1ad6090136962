// The Python module gompfs._codec: batches of blocks on several threads, with the GIL released.
#include <nanobind/nanobind.h>

#include <cstring>
#include <optional>
#include <vector>

#include "codec/codec.h"
#include "common/buffer_view.h"
#include "common/parallel.h"

namespace nb = nanobind;

namespace gompfs {
namespace {

constexpr std::size_t kBlockHeaderSize = 32;

nb::list encode_blocks(nb::handle stream, std::size_t block_size, int codec, int level,
                       bool dependency_elimination, unsigned num_threads) {
    const BufferView view(stream, PyBUF_SIMPLE);
    const Bytes bytes = view.bytes();
    if (block_size == 0) {
        throw nb::value_error("block_size must be positive");
    }
    const std::size_t num_blocks = (bytes.size() + block_size - 1) / block_size;
    const EncodeOptions options{static_cast<Codec>(codec), level, dependency_elimination};
    std::vector<std::optional<std::vector<std::uint8_t>>> payloads(num_blocks);
    {
        nb::gil_scoped_release release;
        parallel_for(num_blocks, num_threads, [&](std::size_t index) {
            const std::size_t start = index * block_size;
            const Bytes content = bytes.subspan(start, std::min(block_size, bytes.size() - start));
            payloads[index] = encode_payload(content, options);
        });
    }
    nb::list result;
    for (const auto& payload : payloads) {
        if (payload) {
            result.append(nb::bytes(payload->data(), payload->size()));
        } else {
            result.append(nb::none());
        }
    }
    return result;
}

struct DecodeJob {
    Codec codec;
    Bytes payload;
    MutableBytes content;
    bool decoded = false;
};

nb::list decode_blocks(nb::sequence codecs, nb::sequence blocks, nb::handle out,
                       nb::sequence targets, nb::sequence uncompressed_sizes,
                       unsigned num_threads) {
    const BufferView out_view(out, PyBUF_WRITABLE);
    const MutableBytes out_bytes = out_view.mutable_bytes();
    const std::size_t count = nb::len(blocks);
    std::vector<BufferView> views;
    std::vector<DecodeJob> jobs;
    views.reserve(count);
    jobs.reserve(count);
    for (std::size_t index = 0; index < count; ++index) {
        views.emplace_back(nb::object(blocks[index]), PyBUF_SIMPLE);
        const Bytes block = views.back().bytes();
        const auto target = nb::cast<std::size_t>(targets[index]);
        const auto size = nb::cast<std::size_t>(uncompressed_sizes[index]);
        if (block.size() < kBlockHeaderSize || target > out_bytes.size() ||
            size > out_bytes.size() - target) {
            throw nb::value_error("a block lies outside its buffers");
        }
        jobs.push_back({static_cast<Codec>(nb::cast<int>(codecs[index])),
                        block.subspan(kBlockHeaderSize), out_bytes.subspan(target, size)});
    }
    {
        nb::gil_scoped_release release;
        parallel_for(count, num_threads, [&](std::size_t index) {
            DecodeJob& job = jobs[index];
            job.decoded = decode_payload(job.codec, job.payload, job.content);
        });
    }
    nb::list failed;
    for (std::size_t index = 0; index < count; ++index) {
        if (!jobs[index].decoded) {
            failed.append(index);
        }
    }
    return failed;
}

}  // namespace

NB_MODULE(_codec, module) {
    using namespace nb::literals;
    module.doc() = "Native codecs: batches of blocks, decoded and encoded on several threads.";
    module.def("encode_blocks", &encode_blocks, "stream"_a, "block_size"_a, "codec"_a, "level"_a,
               "dependency_elimination"_a, "num_threads"_a);
    module.def("decode_blocks", &decode_blocks, "codecs"_a, "blocks"_a, "out"_a, "targets"_a,
               "uncompressed_sizes"_a, "num_threads"_a);
}

}  // namespace gompfs
