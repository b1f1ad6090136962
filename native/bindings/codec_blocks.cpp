// Batches of blocks in gompfs._native.codec: converts arguments and releases the GIL. The work is
// in native/codec/block_batch.cpp.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/block_facts.h"
#include "bindings/block_views.h"
#include "bindings/buffer_view.h"
#include "bindings/codec_argument.h"
#include "bindings/interruptible.h"
#include "bindings/shared_symbols.h"
#include "bindings/types.h"
#include "codec/block_batch.h"
#include "codec/dictionary.h"
#include "codec/payload.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

py::List<EncodedBlock> encode(const py::Buffer& stream, std::size_t block_size, CodecArgument codec,
                              int level, bool dependency_elimination, unsigned num_threads,
                              int group_size_log2, bool strict_sources,
                              const SharedDictionary* dictionary) {
    const BufferView view(stream, PyBUF_SIMPLE);
    EncodeOptions options{codec, level, dependency_elimination, group_size_log2, strict_sources};
    std::vector<std::vector<std::uint8_t>> blocks;
    run_interruptibly([&] {
        options.dictionary = dictionary == nullptr ? nullptr : &dictionary->search();
        blocks = encode_blocks(view.bytes(), block_size, options, num_threads);
    });
    py::List<EncodedBlock> result;
    for (const auto& block : blocks) {
        result.append(with_facts(to_bytes(block)));
    }
    return result;
}

// A new bytes object, and its memory. It is written before Python code can see it.
nb::bytes new_bytes(std::size_t size, MutableBytes& memory) {
    PyObject* const object = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
    if (object == nullptr) {
        throw nb::python_error();
    }
    memory = {reinterpret_cast<std::uint8_t*>(PyBytes_AsString(object)), size};
    return nb::steal<nb::bytes>(object);
}

py::List<EncodedBlock> frame(const py::Buffer& stream, std::size_t block_size, CodecArgument codec,
                             int level, bool dependency_elimination, unsigned num_threads,
                             const py::Buffer& packed, const py::Buffer& sizes,
                             const py::Buffer& failed, int group_size_log2, bool strict_sources) {
    const BufferView view(stream, PyBUF_SIMPLE), packed_view(packed, PyBUF_SIMPLE);
    const BufferView size_view(sizes, PyBUF_SIMPLE), failed_view(failed, PyBUF_SIMPLE);
    const EncodeOptions options{codec, level, dependency_elimination, group_size_log2,
                                strict_sources};
    std::optional<FramedBlocks> framed;
    {
        const nb::gil_scoped_release release;
        framed.emplace(view.bytes(), block_size, options,
                       DevicePayloads{packed_view.bytes(), size_view.bytes(), failed_view.bytes()},
                       num_threads);
    }
    std::vector<nb::bytes> blocks;
    std::vector<MutableBytes> memory(framed->num_blocks());
    for (std::size_t index = 0; index < memory.size(); ++index) {
        blocks.push_back(new_bytes(framed->size(index), memory[index]));
    }
    {
        const nb::gil_scoped_release release;
        framed->write(memory, num_threads);
    }
    py::List<EncodedBlock> result;
    for (const nb::bytes& block : blocks) {
        result.append(with_facts(block));
    }
    return result;
}

// For each block, the symbols of its part, or None.
using Symbols = std::optional<py::Sequence<std::optional<SharedSymbols>>>;

// The symbols of each block's part, null for None.
std::vector<const SymbolTable*> tables_of(const Symbols& symbols) {
    std::vector<const SymbolTable*> tables;
    if (symbols) {
        for (const nb::handle each : *symbols) {
            tables.push_back(each.is_none() ? nullptr
                                            : nb::cast<const SharedSymbols&>(each).table.get());
        }
    }
    return tables;
}

nb::bytes decode(const py::Sequence<py::Buffer>& blocks, const py::Buffer& out, bool verify,
                 unsigned num_threads, const std::optional<std::vector<std::uint32_t>>& sizes,
                 const Symbols& symbols) {
    const BufferView out_view(out, PyBUF_WRITABLE);
    const BlockViews views(blocks);
    const std::vector<const SymbolTable*> tables = tables_of(symbols);
    std::vector<BlockStatus> statuses;
    {
        const nb::gil_scoped_release release;
        statuses = decode_blocks(views.blocks(), out_view.mutable_bytes(), sizes, tables, verify,
                                 num_threads);
    }
    return to_bytes(statuses);
}

// What `symbols` is: None, a SymbolTable, or a head that is not opened yet.
Supplement supplement_of(nb::handle symbols) {
    if (symbols.is_none()) {
        return Supplement::none;
    }
    const SharedSymbols* shared = nullptr;
    return nb::try_cast(symbols, shared) ? supplement_of(shared->table.get()) : Supplement::symbols;
}

nb::bytes read_headers(const py::Sequence<py::Buffer>& blocks,
                       const std::optional<py::Sequence<nb::object>>& symbols) {
    std::vector<Supplement> supplements(nb::len(blocks), Supplement::none);
    if (symbols) {
        supplements.clear();
        for (const nb::handle each : *symbols) {
            supplements.push_back(supplement_of(each));
        }
    }
    if (supplements.size() != nb::len(blocks)) {
        throw nb::value_error("each block needs the symbols of its part");
    }
    std::vector<BlockFacts> facts;
    facts.reserve(nb::len(blocks));
    for (nb::handle block : blocks) {
        const Supplement supplement = supplements[facts.size()];
        // One view at a time: there may be 100,000 blocks.
        facts.push_back(read_facts(BufferView(block, PyBUF_SIMPLE).bytes(), supplement));
    }
    return nb::bytes(facts.data(), facts.size() * sizeof(BlockFacts));
}

bool check_sizes(const py::Buffer& sizes) {
    const BufferView view(sizes, PyBUF_SIMPLE);
    if (view.bytes().size() % sizeof(std::uint32_t) != 0) {
        throw std::invalid_argument("the sizes are not whole numbers of 32 bits");
    }
    return are_possible_block_sizes(view.bytes());
}

nb::bytes gather(const py::Sequence<py::Buffer>& blocks, const py::Buffer& headers,
                 const py::Buffer& offsets, const py::Buffer& out, unsigned num_threads) {
    const BlockViews views(blocks);
    const BufferView header_view(headers, PyBUF_SIMPLE);
    const BufferView offset_view(offsets, PyBUF_SIMPLE);
    const BufferView out_view(out, PyBUF_WRITABLE);
    std::vector<BlockStatus> statuses;
    {
        const nb::gil_scoped_release release;
        statuses = gather_payloads(views.blocks(), header_view.bytes(), offset_view.bytes(),
                                   out_view.mutable_bytes(), num_threads);
    }
    return to_bytes(statuses);
}

bool decode_into(CodecArgument codec, const py::Buffer& payload, const py::Buffer& out) {
    const BufferView payload_view(payload, PyBUF_SIMPLE);
    const BufferView out_view(out, PyBUF_WRITABLE);
    const nb::gil_scoped_release release;
    return decode_payload(codec, payload_view.bytes(), out_view.mutable_bytes());
}

}  // namespace

void bind_codec_blocks(nb::module_& codec) {
    nb::enum_<Codec>(codec, "Codec")
        .value("STORED", Codec::stored)
        .value("GOMPRESSO_BYTE", Codec::gompresso_byte)
        .value("GOMPRESSO_BIT", Codec::gompresso_bit)
        .value("GOMPRESSO_TADOC", Codec::gompresso_tadoc)
        .value("HEAD", Codec::head)
        .value("GOMPRESSO_BIT_DICTIONARY", Codec::gompresso_bit_dictionary);
    nb::enum_<BlockStatus>(codec, "BlockStatus")
        .value("OK", BlockStatus::ok)
        .value("BAD_HEADER", BlockStatus::bad_header)
        .value("BAD_CHECKSUM", BlockStatus::bad_checksum)
        .value("BAD_PAYLOAD", BlockStatus::bad_payload)
        .value("BAD_CONTENT", BlockStatus::bad_content);
    codec.def("encode_blocks", &encode, "stream"_a, "block_size"_a, "codec"_a, "level"_a,
              "dependency_elimination"_a, "num_threads"_a,
              "group_size_log2"_a = kDefaultGroupSizeLog2, "strict_sources"_a = false,
              "dictionary"_a.none() = nb::none(),
              "Cuts `stream` into blocks and encodes each, with header. A block is stored if no "
              "payload would be smaller.\n\n"
              "Returns each block with its codec and its uncompressed size. With a dictionary, "
              "`codec` must be gompresso-bit, and the codec of blocks is gompresso-bit-dictionary. "
              "Raises ValueError for a block size, a level or a group size that does not exist, "
              "and for a dictionary with another codec.");
    codec.def("frame_payloads", &frame, "stream"_a, "block_size"_a, "codec"_a, "level"_a,
              "dependency_elimination"_a, "num_threads"_a, "packed"_a, "sizes"_a, "failed"_a,
              "group_size_log2"_a = kDefaultGroupSizeLog2, "strict_sources"_a = false,
              "Returns what `encode_blocks` returns, from payloads that a device made.\n\n"
              "`sizes` has the size of each payload (u32), 0 for a block that is stored; `packed` "
              "has the payloads, each at a multiple of 16. Encodes block i if `failed[i]` (u8) is "
              "not 0. Raises ValueError also if there are not as many payloads as blocks, or if a "
              "payload is not smaller than its block or not inside `packed`.");
    codec.def("decode_blocks", &decode, "blocks"_a, "out"_a, "verify"_a, "num_threads"_a,
              "sizes"_a = nb::none(), "symbols"_a = nb::none(),
              "Checks and decodes whole blocks one after another into `out`. Returns a BlockStatus "
              "for each.\n\n"
              "With `sizes`, a block that should decode to another number of bytes has a bad "
              "header and `sizes[i]` zeros. A block of gompresso-tadoc needs the symbols of its "
              "part, one of gompresso-bit-dictionary its dictionary. No other may have them, "
              "except that stored blocks may have a dictionary; otherwise its header is bad. "
              "Raises ValueError if `out` is too small, or if there are not as many sizes or "
              "symbols as blocks.");
    codec.def("read_headers", &read_headers, "blocks"_a, "symbols"_a = nb::none(),
              "Returns facts of each block, 32 bytes: BlockStatus, codec, payload size, "
              "uncompressed size (u32 each), and the checksums of the content and of the block "
              "(u64).\n\n"
              "All except the status are 0 if the header cannot be read, or if the codec does not "
              "go with the symbols, see `decode_blocks`. `gompfs.codec.headers` reads the facts as "
              "an array. Raises ValueError if there are not as many symbols as blocks.");
    codec.def("are_possible_block_sizes", &check_sizes, "sizes"_a,
              "Whether all items of a column of compressed_size (u32) are possible.");
    codec.def("gather_payloads", &gather, "blocks"_a, "headers"_a, "offsets"_a, "out"_a,
              "num_threads"_a,
              "Checks blocks, and copies their payloads to `offsets` (u64) in `out`. `headers` is "
              "from `read_headers`.\n\n"
              "Returns a BlockStatus for each. The payload of a damaged block is not copied.");
    codec.def("decode_payload", &decode_into, "codec"_a, "payload"_a, "out"_a,
              "Decodes a payload, without header and checksums, into exactly `len(out)` bytes. "
              "Returns False if it is damaged.");
}

}  // namespace gompfs
