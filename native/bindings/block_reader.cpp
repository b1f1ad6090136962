// The Python class gompfs._native.blocks.BlockReader: converts arguments and releases the GIL. The
// work is done in native/blocks.
#include "blocks/block_reader.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/columns.h"
#include "bindings/held_bytes.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"
#include "bindings/values.h"
#include "blocks/block_source.h"
#include "blocks/hash_files.h"
#include "common/decode_work.h"
#include "common/parallel.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using Extents = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>;

// Copies blocks that another engine decoded into the cache. Gives up the blocks for which there is
// no memory.
void insert(BlockReader& reader, const std::vector<std::uint64_t>& numbers,
            const py::Sequence<py::Buffer>& contents, unsigned num_threads) {
    std::vector<BufferView> views;
    for (const nb::handle content : contents) {
        views.emplace_back(content, PyBUF_SIMPLE);
        if (views.back().bytes().size() > reader.block_size()) {
            throw nb::value_error("the content is larger than a block");
        }
    }
    if (views.size() != numbers.size()) {
        throw nb::value_error("the number of block numbers differs from the number of contents");
    }
    const nb::gil_scoped_release release;
    parallel_for(views.size(), num_threads, [&](std::size_t index) {
        const auto bytes = views[index].bytes();
        try {
            // Reuses the memory of a block that an insert before has evicted.
            BlockCache::Block block = reader.cache.make();
            std::copy(bytes.begin(), bytes.end(), block->resize(bytes.size()).begin());
            reader.cache.insert(numbers[index], std::move(block));
        } catch (const std::bad_alloc&) {
            reader.cache.give_up(numbers[index]);
        }
    });
}

using SegmentColumns = std::tuple<std::uint64_t, py::Buffer, py::Buffer, py::Buffer>;

// Each segment: first block, archive_offsets (u64), compressed_sizes and uncompressed_sizes (u32).
// The columns must have equally many values.
void read_from(BlockReader& reader, int descriptor, const std::vector<SegmentColumns>& segments,
               std::shared_ptr<PartHeads> heads, bool verify, std::shared_ptr<DecodeWork> work) {
    std::vector<StoredSegment> stored;
    for (const auto& [first_block, offsets, sizes, uncompressed_sizes] : segments) {
        stored.push_back({first_block, values_of<std::uint64_t>(offsets),
                          values_of<std::uint32_t>(sizes),
                          values_of<std::uint32_t>(uncompressed_sizes)});
    }
    reader.read_from(std::make_shared<BlockSource>(descriptor, reader.block_size(),
                                                   std::move(stored), std::move(heads), verify,
                                                   std::move(work)));
}

// How many bytes of blocks a Python function decodes in one call by default: a batch of a GPU.
constexpr std::uint64_t kDecodedAtOnce = 32 << 20;

// decode(numbers) -> (contents, statuses)
using DecodeFunction =
    py::Callable<py::Tuple<py::Sequence<py::Buffer>, nb::bytes>(std::vector<std::uint64_t>)>;

// Calls a Python function that decodes blocks.
class PythonDecoder : public BlockDecoder {
  public:
    PythonDecoder(DecodeFunction decode, std::size_t block_size, std::uint64_t batch_bytes)
        : BlockDecoder(batch_bytes), decode_(std::move(decode)), block_size_(block_size) {}

    void decode(const std::vector<std::uint64_t>& numbers, const Use& use) override {
        const nb::gil_scoped_acquire acquire;
        const nb::object result = decode_(numbers);
        const auto statuses = nb::cast<nb::bytes>(result[1]);
        std::vector<BufferView> views;
        std::vector<Decoded> decoded;
        for (const nb::handle content : nb::cast<nb::sequence>(result[0])) {
            views.emplace_back(content, PyBUF_SIMPLE);
            const auto bytes = views.back().bytes();
            if (bytes.size() > block_size_ || decoded.size() >= statuses.size()) {
                throw nb::value_error("decoded blocks are too large or too many");
            }
            decoded.push_back({bytes, static_cast<BlockStatus>(statuses.c_str()[decoded.size()])});
        }
        if (decoded.size() != numbers.size() || statuses.size() != numbers.size()) {
            throw nb::value_error("the number of decoded blocks is wrong");
        }
        const nb::gil_scoped_release release;
        use(decoded);
    }

  private:
    const DecodeFunction decode_;
    const std::size_t block_size_;
};

void decode_with(BlockReader& reader, DecodeFunction decode, unsigned num_threads,
                 std::uint64_t batch_bytes) {
    reader.decode_with(
        std::make_unique<PythonDecoder>(std::move(decode), reader.block_size(), batch_bytes),
        num_threads);
}

FileLayouts layouts_of(const Columns& columns, std::uint64_t end) {
    if (columns.empty()) {
        return {};
    }
    LayoutColumns views;
    for (std::size_t index = 0; index < views.size(); ++index) {
        views[index] = text_of(columns, index);
    }
    return read_layouts(views, end);
}

// find(ino, alone) -> (columns, end)
using FindFunction =
    py::Callable<py::Tuple<py::Sequence<nb::bytes>, std::uint64_t>(std::uint64_t, bool)>;

// Calls a Python function for unknown files.
void find_layouts_with(BlockReader& reader, FindFunction find) {
    reader.layouts.set_find([find = std::move(find)](std::uint64_t ino, bool alone) {
        const nb::gil_scoped_acquire acquire;
        const auto [columns, end] = nb::cast<std::pair<Columns, std::uint64_t>>(find(ino, alone));
        return layouts_of(columns, end);
    });
}

std::variant<py::List<nb::memoryview>, ReadFailure> read(BlockReader& reader, std::uint64_t ino,
                                                         std::uint64_t file_offset,
                                                         std::uint64_t size) {
    ReadPieces found;
    const ReadFailure failure = [&] {
        const nb::gil_scoped_release release;
        return reader.read_pieces(ino, file_offset, size, found);
    }();
    if (failure) {
        return failure;
    }
    py::List<nb::memoryview> views;
    std::size_t block = 0;
    for (const iovec& piece : found.pieces) {
        auto* const data = static_cast<std::uint8_t*>(piece.iov_base);
        const bool is_of_block = block < found.blocks.size() &&
                                 data >= found.blocks[block]->bytes().data() &&
                                 data < found.blocks[block]->bytes().data() + reader.block_size();
        std::shared_ptr<const void> owner;
        if (is_of_block) {
            owner = std::move(found.blocks[block++]);
        }
        views.append(view_of({data, piece.iov_len, true, std::move(owner)}));
    }
    return views;
}

std::optional<ReadFailure> decode_into(BlockReader& reader, std::uint64_t ino,
                                       std::uint64_t file_offset, const py::Buffer& out,
                                       unsigned num_threads, bool use_source) {
    const BufferView view(out, PyBUF_WRITABLE);
    const nb::gil_scoped_release release;
    const ReadFailure failure =
        reader.decode_into(ino, file_offset, view.mutable_bytes(), num_threads, use_source);
    return failure ? std::make_optional(failure) : std::nullopt;
}

std::optional<ReadFailure> decode_blocks(BlockReader& reader, std::uint64_t first,
                                         const std::vector<std::uint32_t>& sizes,
                                         const py::Buffer& out, unsigned num_threads) {
    const BufferView view(out, PyBUF_WRITABLE);
    const nb::gil_scoped_release release;
    const ReadFailure failure =
        reader.decode_blocks(first, sizes, view.mutable_bytes(), num_threads);
    return failure ? std::make_optional(failure) : std::nullopt;
}

std::variant<Extents, ReadFailure> extents(BlockReader& reader, std::uint64_t ino) {
    std::shared_ptr<const FileLayout> file;
    const ReadFailure failure = [&] {
        const nb::gil_scoped_release release;
        return reader.find_file(ino, file);
    }();
    if (failure) {
        return failure;
    }
    Extents extents;
    for (const FileExtent& extent : file->extents) {
        extents.emplace_back(extent.file_offset, extent.stream_offset, extent.size);
    }
    return extents;
}

using InoAndSize = std::pair<std::uint64_t, std::uint64_t>;

using Sha256OrFailure = std::variant<nb::bytes, ReadFailure>;

py::List<Sha256OrFailure> sha256_of_files(BlockReader& reader, const std::vector<InoAndSize>& files,
                                          unsigned num_threads) {
    std::vector<FileToHash> to_hash;
    for (const auto& [ino, size] : files) {
        to_hash.push_back({ino, size});
    }
    std::vector<FileHash> hashes;
    run_interruptibly([&] { hashes = hash_files(reader, to_hash, num_threads); });
    py::List<Sha256OrFailure> result;
    for (const FileHash& hash : hashes) {
        const auto* digest = std::get_if<Sha256::Digest>(&hash);
        result.append(digest ? nb::object(to_bytes(*digest))
                             : nb::cast(std::get<ReadFailure>(hash)));
    }
    return result;
}

void add_file(BlockReader& reader, std::uint64_t ino, std::uint64_t size, const Extents& extents) {
    FileLayout layout{size, {}};
    for (const auto& [file_offset, stream_offset, extent_size] : extents) {
        layout.extents.push_back({file_offset, stream_offset, extent_size});
    }
    reader.layouts.add({{ino, std::move(layout)}});
}

void add_columns(BlockReader& reader, const Columns& columns, std::uint64_t end) {
    FileLayouts layouts = layouts_of(columns, end);
    const nb::gil_scoped_release release;
    reader.layouts.add(std::move(layouts));
}

std::optional<std::vector<std::uint64_t>> wait_ahead(BlockReader& reader) {
    const nb::gil_scoped_release release;
    return reader.read_ahead.wait();
}

}  // namespace

void bind_block_reader(nb::module_& module) {
    nb::enum_<ReadFailure::Reason>(module, "FailureReason")
        .value("NO_SUCH_FILE", ReadFailure::Reason::no_such_file)
        .value("IMPOSSIBLE_EXTENTS", ReadFailure::Reason::impossible_extents)
        .value("OUTSIDE_STREAM", ReadFailure::Reason::outside_stream)
        .value("OUTSIDE_SEGMENT", ReadFailure::Reason::outside_segment)
        .value("DAMAGED_BLOCK", ReadFailure::Reason::damaged_block)
        .value("MISSING_BLOCK", ReadFailure::Reason::missing_block);
    nb::class_<ReadFailure>(module, "ReadFailure", "Why a read returned nothing.")
        .def_ro("reason", &ReadFailure::reason)
        .def_ro("block", &ReadFailure::block, "The number of the damaged block.")
        .def_prop_ro(
            "status",
            [](const ReadFailure& failure) { return static_cast<unsigned>(failure.status); },
            "The BlockStatus of the damaged block.");
    nb::class_<BlockReader>(module, "BlockReader",
                            "Reads of the files of one archive, through a cache of decoded blocks.")
        .def(
            nb::init<std::uint64_t, std::uint64_t, std::uint64_t>(), "num_blocks"_a, "block_size"_a,
            "capacity"_a,
            "Makes an empty cache of up to `capacity` blocks, for a stream of `num_blocks` blocks.")
        .def("read_from", &gompfs::read_from, "descriptor"_a, "segments"_a, "heads"_a, "verify"_a,
             "work"_a,
             "Lets reads decode missing blocks from an open file, which is closed with the "
             "reader.\n\n"
             "Each segment is its first block, and for each block archive_offset (u64), "
             "compressed_size and uncompressed_size (u32). `heads` opens the heads of parts. "
             "`verify` checks the decoded bytes. `work` counts what is decoded.")
        .def("decode_with", &gompfs::decode_with, "decode"_a, "num_threads"_a,
             "batch_bytes"_a = kDecodedAtOnce,
             "Sets the function that decodes blocks, by ascending numbers, where `read_from` does "
             "not apply.\n\n"
             "It returns the content and the BlockStatus of each block; the content of a damaged "
             "block is not used. Large reads ask for `batch_bytes` of blocks at once. Up to "
             "`num_threads` threads copy the contents. Must be called before other threads use the "
             "reader, as `find_layouts_with` must.")
        .def("find_layouts_with", &gompfs::find_layouts_with, "find"_a,
             "Sets the function that reads the layout of an unknown file from the index.\n\n"
             "It gets the inode number, and whether to read this file alone because the rows of "
             "another were impossible. It returns columns and their end as for `add_columns`.")
        .def(
            "read", &gompfs::read, "ino"_a, "file_offset"_a, "size"_a,
            "Returns up to `size` bytes of a file as views of decoded blocks, in order; fewer only "
            "at its end.\n\n"
            "Raises what the functions of `decode_with` and `find_layouts_with` raise, and "
            "OSError.")
        .def("decode_into", &gompfs::decode_into, "ino"_a, "file_offset"_a, "out"_a,
             "num_threads"_a, "use_source"_a,
             "Decodes a part of a file into `out`, which holds zeros, without using the cache. "
             "Raises as `read` does.\n\n"
             "Without `use_source`, the function of `decode_with` decodes the blocks. If it fails, "
             "`out` has arbitrary bytes.")
        .def("decode_blocks", &gompfs::decode_blocks, "first"_a, "sizes"_a, "out"_a,
             "num_threads"_a,
             "Decodes blocks from `first` on, of these sizes, into `out`, without using the "
             "cache.\n\n"
             "Returns why it failed, if so. `read_from` must have been called. Raises ValueError "
             "if `out` is too small, and OSError.")
        .def("extents", &gompfs::extents, "ino"_a,
             "Returns file_offset, stream_offset and size of the extents of a file, by "
             "file_offset.")
        .def("hash_files", &sha256_of_files, "files"_a, "num_threads"_a,
             "Returns the SHA-256 of each file, or why it cannot be read.\n\n"
             "`files` are pairs of an inode number and a size, in the order of the stream.")
        .def("load", &BlockReader::load, nb::call_guard<nb::gil_scoped_release>(), "numbers"_a,
             "num_threads"_a, "use_source"_a,
             "Decodes blocks that are neither cached nor claimed, and returns how many there were. "
             "Numbers must ascend. `use_source` as in `decode_into`.")
        // Tests need these, to take the parts of several threads, of read-ahead and of the index:
        // claim, insert, give_up, wait, note, add_columns, add_file and knows.
        .def(
            "claim",
            [](BlockReader& reader, std::uint64_t number) { return reader.cache.claim(number); },
            "number"_a,
            "Claims a block for decoding, until `insert` or `give_up`. Returns False if it is "
            "cached or claimed.")
        .def("insert", &gompfs::insert, "numbers"_a, "contents"_a, "num_threads"_a = 1,
             "Copies decoded blocks into the cache, and ends their claims.")
        .def(
            "give_up",
            [](BlockReader& reader, std::uint64_t number) { reader.cache.give_up(number); },
            "number"_a, "Ends the claim on a block that could not be decoded.")
        .def(
            "wait", [](BlockReader& reader, std::uint64_t number) { reader.cache.wait(number); },
            nb::call_guard<nb::gil_scoped_release>(), "number"_a,
            "Waits until no thread has a claim on a block, which may be cached or not then.")
        .def(
            "__contains__",
            [](BlockReader& reader, std::uint64_t number) { return reader.cache.contains(number); },
            "number"_a, "Whether a block is cached.")
        .def(
            "__len__", [](BlockReader& reader) { return reader.cache.size(); },
            "The number of cached blocks.")
        .def("set_capacity", &BlockReader::set_capacity, "capacity"_a,
             "Sets the number of blocks to cache, evicts blocks above it, and limits read-ahead "
             "accordingly.")
        .def(
            "clear", [](BlockReader& reader) { reader.cache.clear(); },
            "Drops all cached blocks; claims stay.")
        .def(
            "note",
            [](BlockReader& reader, std::uint64_t ino, std::uint64_t stream_offset,
               std::uint64_t size) {
                return reader.read_ahead.note({ino, stream_offset, size}, reader.max_ahead);
            },
            "ino"_a, "stream_offset"_a, "size"_a,
            "Reports a read of at least one byte to read-ahead, as `read` does.\n\n"
            "Returns the number of blocks to decode at once, of at most `max_ahead`: negative for "
            "a backward reader, 0 if no pattern was recognised.")
        .def("wait_ahead", &gompfs::wait_ahead,
             "Waits for blocks to decode ahead. Returns None once the reader is closed.")
        .def_prop_ro(
            "has_wanted", [](BlockReader& reader) { return reader.read_ahead.has_wanted(); },
            "Whether `wait_ahead` would return blocks at once.")
        .def_prop_rw(
            "max_ahead", [](BlockReader& reader) { return reader.max_ahead.load(); },
            [](BlockReader& reader, std::uint64_t count) { reader.max_ahead = count; },
            "The number of blocks that are worth decoding ahead at once.")
        .def("close", &BlockReader::close,
             "Stops decoding, ahead and for reads. The file of `read_from` is closed when its last "
             "read ends.")
        .def("add_file", &gompfs::add_file, "ino"_a, "size"_a, "extents"_a,
             "Adds the layout of a file, with extents as from `extents`.")
        .def(
            "add_columns", &gompfs::add_columns, "columns"_a, "end"_a,
            "Adds the layouts of files with inode numbers below `end`, from rows of the index: see "
            "native/blocks/file_layouts.h. Raises ValueError if the rows are inconsistent.")
        .def(
            "knows",
            [](BlockReader& reader, std::uint64_t ino) { return reader.layouts.contains(ino); },
            "ino"_a, "Whether the layout of a file was added.")
        .def_prop_ro(
            "num_hits", [](BlockReader& reader) { return reader.num_hits.load(); },
            "Number of blocks that reads found in the cache.")
        .def_prop_ro(
            "num_misses", [](BlockReader& reader) { return reader.num_misses.load(); },
            "Number of blocks that were decoded for reads.");
}

}  // namespace gompfs
