// Large files in gompfs._native.sources: PieceHashes and read_range.
#include <nanobind/nanobind.h>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"
#include "sources/local_files.h"
#include "sources/piece_hashes.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void append(PieceHashes& hashes, const py::Buffer& content, unsigned num_threads) {
    const BufferView view(content, PyBUF_SIMPLE);
    const nb::gil_scoped_release release;
    hashes.append(view.bytes(), num_threads);
}

nb::bytes digests(const PieceHashes& hashes) {
    const auto& all = hashes.digests();
    return nb::bytes(all.data(), all.size() * sizeof(Sha256::Digest));
}

std::size_t read(int descriptor, std::uint64_t file_offset, const py::Buffer& out,
                 unsigned num_threads) {
    const BufferView view(out, PyBUF_WRITABLE);
    std::size_t num_missing = 0;
    run_interruptibly([&] {
        num_missing = read_range(descriptor, file_offset, view.mutable_bytes(), num_threads);
    });
    return num_missing;
}

}  // namespace

void bind_large_files(nb::module_& sources) {
    nb::class_<PieceHashes> hashes(sources, "PieceHashes",
                                   "The SHA-256 of each piece of a content that comes in order.");
    hashes.attr("PIECE_SIZE") = PieceHashes::kPieceSize;  // the last piece may have fewer bytes
    hashes.def(nb::init<>())
        .def("append", &append, "content"_a, "num_threads"_a,
             "Hashes the next bytes, on up to `num_threads` threads.")
        .def("finish", &PieceHashes::finish,
             "Ends the last piece. Nothing can be added afterwards.")
        .def_prop_ro("digests", &digests,
                     "The hashes of the pieces that have ended, 32 bytes for each.");
    sources.def("read_range", &read, "descriptor"_a, "file_offset"_a, "out"_a, "num_threads"_a,
                "Fills `out` with the bytes of an open file, on up to `num_threads` threads.\n\n"
                "Returns how many bytes are missing because the file is shorter; they are zeros. "
                "Raises OSError.");
}

}  // namespace gompfs
