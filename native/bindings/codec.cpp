// The Python module gompfs._native.codec: encodes, decodes and checks batches of blocks on several
// threads.
//
// The functions convert arguments, release the interpreter's lock and distribute blocks over
// threads; the codecs are in the other files of this folder. gompfs/_codec.pyi documents every
// function. Blocks that are damaged are reported by a status for each block, not by exceptions: the
// caller decides what a damaged block means.
#include "codec/codec.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "codec/block.h"
#include "common/buffer_pool.h"
#include "common/buffer_view.h"
#include "common/decode_work.h"
#include "common/held_bytes.h"
#include "common/interruptible.h"
#include "common/little_endian.h"
#include "common/parallel.h"
#include "shared/format_constants.h"

namespace nb = nanobind;

namespace gompfs {
namespace {

nb::list encode_blocks(nb::handle stream, std::size_t block_size, int codec, int level,
                       bool dependency_elimination, unsigned num_threads, int group_size_log2) {
    const BufferView view(stream, PyBUF_SIMPLE);
    const Bytes bytes = view.bytes();
    if (block_size == 0 || block_size > kMaxBlockSize) {
        throw nb::value_error("block_size is out of bounds");
    }
    if (group_size_log2 < kMinGroupSizeLog2 || group_size_log2 > kMaxGroupSizeLog2) {
        throw nb::value_error("group_size_log2 is out of bounds");
    }
    const std::size_t num_blocks = (bytes.size() + block_size - 1) / block_size;
    const EncodeOptions options{static_cast<Codec>(codec), level, dependency_elimination,
                                group_size_log2};
    std::vector<std::vector<std::uint8_t>> blocks(num_blocks);
    run_interruptibly([&] {
        parallel_for(num_blocks, num_threads, [&](std::size_t index) {
            const std::size_t start = index * block_size;
            const Bytes content = bytes.subspan(start, std::min(block_size, bytes.size() - start));
            blocks[index] = encode_block(content, options);
        });
    });
    nb::list result;
    for (const auto& block : blocks) {
        result.append(nb::bytes(block.data(), block.size()));
    }
    return result;
}

std::vector<BufferView> view_all(nb::sequence blocks) {
    std::vector<BufferView> views;
    views.reserve(nb::len(blocks));
    for (nb::handle block : blocks) {
        views.emplace_back(block, PyBUF_SIMPLE);
    }
    return views;
}

struct DecodeJob {
    Bytes block;
    std::optional<BlockHeader> header;
    MutableBytes content;
    BlockStatus status = BlockStatus::bad_header;
};

// Pairs each block with its header and its part of `out`; the parts follow each other.
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
    const std::vector<BufferView> views = view_all(blocks);
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

// What read_headers returns for each block; gompfs.codec.headers reads it as an array.
struct BlockFacts {
    std::uint32_t status;
    std::uint32_t codec;
    std::uint32_t payload_size;
    std::uint32_t uncompressed_size;  // 0 if there is no valid header
    std::uint64_t checksum;
};

nb::bytes read_headers(nb::sequence blocks) {
    std::vector<BlockFacts> facts;
    facts.reserve(nb::len(blocks));
    for (nb::handle block : blocks) {
        // One view at a time: there may be 100,000 blocks.
        const BufferView view(block, PyBUF_SIMPLE);
        const auto header = parse_block_header(view.bytes());
        const bool sound =
            header && view.bytes().size() == kBlockHeaderSize + std::size_t{header->payload_size};
        const BlockStatus status = sound ? BlockStatus::ok : BlockStatus::bad_header;
        facts.push_back({static_cast<std::uint32_t>(status),
                         header ? static_cast<std::uint32_t>(header->codec) : 0,
                         header ? header->payload_size : 0, header ? header->uncompressed_size : 0,
                         header ? header->block_xxh3 : 0});
    }
    return nb::bytes(facts.data(), facts.size() * sizeof(BlockFacts));
}

// The number of bytes that each block decodes to by its header; 0 if it has no valid header.
nb::list uncompressed_sizes(nb::sequence blocks) {
    nb::list sizes;
    for (nb::handle block : blocks) {
        const BufferView view(block, PyBUF_SIMPLE);
        const auto header = parse_block_header(view.bytes());
        sizes.append(header ? header->uncompressed_size : 0);
    }
    return sizes;
}

// Whether all blocks, given by columns of archive_offset (u64) and compressed_size (u32), have
// possible sizes and end at data_end or before.
bool are_possible_places(nb::handle offsets, nb::handle sizes, std::uint64_t data_end) {
    const BufferView offset_view(offsets, PyBUF_SIMPLE);
    const BufferView size_view(sizes, PyBUF_SIMPLE);
    const std::size_t count = size_view.bytes().size() / sizeof(std::uint32_t);
    if (size_view.bytes().size() % sizeof(std::uint32_t) != 0 ||
        offset_view.bytes().size() != count * sizeof(std::uint64_t)) {
        return false;
    }
    for (std::size_t index = 0; index < count; ++index) {
        const auto offset =
            load<std::uint64_t>(offset_view.bytes().data() + index * sizeof(std::uint64_t));
        const auto size =
            load<std::uint32_t>(size_view.bytes().data() + index * sizeof(std::uint32_t));
        if (size < kBlockHeaderSize || size > kBlockHeaderSize + kMaxBlockSize ||
            offset > data_end || size > data_end - offset) {
            return false;
        }
    }
    return true;
}

// Checks blocks and copies their payloads to the given offsets in `out`. Returns a status for each
// block; a damaged block leaves its part of `out` unchanged.
nb::bytes gather_payloads(nb::sequence blocks, nb::handle places, nb::handle out,
                          unsigned num_threads) {
    const std::vector<BufferView> views = view_all(blocks);
    const BufferView place_view(places, PyBUF_SIMPLE);
    const BufferView out_view(out, PyBUF_WRITABLE);
    const MutableBytes target = out_view.mutable_bytes();
    if (place_view.bytes().size() != views.size() * sizeof(std::uint64_t)) {
        throw nb::value_error("each block needs an offset");
    }
    std::string statuses(views.size(), static_cast<char>(BlockStatus::bad_header));
    {
        nb::gil_scoped_release release;
        parallel_for(views.size(), num_threads, [&](std::size_t index) {
            const Bytes block = views[index].bytes();
            const auto place =
                load<std::uint64_t>(place_view.bytes().data() + index * sizeof(std::uint64_t));
            const auto header = parse_block_header(block);
            if (!header || place > target.size() || header->payload_size > target.size() - place) {
                return;
            }
            const BlockStatus status = check_block(*header, block);
            statuses[index] = static_cast<char>(status);
            if (status == BlockStatus::ok) {
                const Bytes payload = block.subspan(kBlockHeaderSize);
                std::copy(payload.begin(), payload.end(), target.begin() + place);
            }
        });
    }
    return nb::bytes(statuses.data(), statuses.size());
}

// Returns one byte for each block: 1 if the decoded bytes at its offset in `out` match the checksum
// in its header.
nb::bytes check_contents(nb::sequence blocks, nb::handle places, nb::handle out,
                         unsigned num_threads) {
    const std::vector<BufferView> views = view_all(blocks);
    const BufferView place_view(places, PyBUF_SIMPLE);
    const BufferView out_view(out, PyBUF_SIMPLE);
    if (place_view.bytes().size() != views.size() * sizeof(std::uint64_t)) {
        throw nb::value_error("each block needs an offset");
    }
    std::string matches(views.size(), 0);
    {
        nb::gil_scoped_release release;
        parallel_for(views.size(), num_threads, [&](std::size_t index) {
            const auto header = parse_block_header(views[index].bytes());
            const auto place =
                load<std::uint64_t>(place_view.bytes().data() + index * sizeof(std::uint64_t));
            const Bytes content = out_view.bytes();
            matches[index] = header && place <= content.size() &&
                             header->uncompressed_size <= content.size() - place &&
                             is_content(*header, content.subspan(place, header->uncompressed_size));
        });
    }
    return nb::bytes(matches.data(), matches.size());
}

bool decode_payload_into(int codec, nb::handle payload, nb::handle out) {
    const BufferView payload_view(payload, PyBUF_SIMPLE);
    const BufferView out_view(out, PyBUF_WRITABLE);
    const nb::gil_scoped_release release;
    return decode_payload(static_cast<Codec>(codec), payload_view.bytes(),
                          out_view.mutable_bytes());
}

}  // namespace

void bind_codec(nb::module_& module) {
    using namespace nb::literals;
    module.doc() = "Native codecs: batches of blocks, decoded and encoded on several threads.";
    nb::class_<DecodeWork>(module, "DecodeWork")
        .def(nb::init<>())
        .def("begin", &DecodeWork::begin)
        .def("end", &DecodeWork::end, "num_blocks"_a, "num_bytes"_a)
        .def("clear", &DecodeWork::clear)
        .def("restart", &DecodeWork::restart)
        .def_prop_ro("num_blocks", [](const DecodeWork& work) { return work.sums().num_blocks; })
        .def_prop_ro("num_bytes", [](const DecodeWork& work) { return work.sums().num_bytes; })
        .def_prop_ro("seconds", [](const DecodeWork& work) { return work.sums().seconds; });
    HeldBytes::define(module);
    nb::class_<BufferPool>(module, "BufferPool")
        .def(nb::init<>())
        .def(
            "allocate",
            [](BufferPool& pool, std::size_t size) {
                auto buffer = pool.allocate(size);
                std::uint8_t* const data = buffer.get();
                return view_of({data, size, false, std::move(buffer)});
            },
            "size"_a)
        .def("drop_free", &BufferPool::drop_free)
        .def_prop_ro("num_free_bytes", &BufferPool::num_free_bytes);
    module.def("encode_blocks", &encode_blocks, "stream"_a, "block_size"_a, "codec"_a, "level"_a,
               "dependency_elimination"_a, "num_threads"_a,
               "group_size_log2"_a = kDefaultGroupSizeLog2);
    module.def("decode_blocks", &decode_blocks, "blocks"_a, "out"_a, "verify"_a, "num_threads"_a);
    module.def("read_headers", &read_headers, "blocks"_a);
    module.def("uncompressed_sizes", &uncompressed_sizes, "blocks"_a);
    module.def("are_possible_places", &are_possible_places, "offsets"_a, "sizes"_a, "data_end"_a);
    module.def("gather_payloads", &gather_payloads, "blocks"_a, "places"_a, "out"_a,
               "num_threads"_a);
    module.def("check_contents", &check_contents, "blocks"_a, "places"_a, "out"_a, "num_threads"_a);
    module.def("decode_payload", &decode_payload_into, "codec"_a, "payload"_a, "out"_a);
}

}  // namespace gompfs
