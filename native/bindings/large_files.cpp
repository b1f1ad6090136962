// Large files in gompfs._native.sources: PieceHashes and read_range.
#include <nanobind/nanobind.h>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/interruptible.h"
#include "sources/local_files.h"
#include "sources/piece_hashes.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void append(PieceHashes& hashes, nb::handle content, unsigned num_threads) {
    const BufferView view(content, PyBUF_SIMPLE);
    const nb::gil_scoped_release release;
    hashes.append(view.bytes(), num_threads);
}

nb::bytes digests(const PieceHashes& hashes) {
    const auto& all = hashes.digests();
    return nb::bytes(all.data(), all.size() * sizeof(Sha256::Digest));
}

std::size_t read(int descriptor, std::uint64_t file_offset, nb::handle out, unsigned num_threads) {
    const BufferView view(out, PyBUF_WRITABLE);
    std::size_t num_missing = 0;
    run_interruptibly([&] {
        num_missing = read_range(descriptor, file_offset, view.mutable_bytes(), num_threads);
    });
    return num_missing;
}

}  // namespace

void bind_large_files(nb::module_& sources) {
    nb::class_<PieceHashes>(sources, "PieceHashes")
        .def(nb::init<>())
        .def("append", &append, "content"_a, "num_threads"_a)
        .def("finish", &PieceHashes::finish)
        .def_prop_ro_static("PIECE_SIZE", [](nb::handle) { return PieceHashes::kPieceSize; })
        .def_prop_ro("digests", &digests);
    sources.def("read_range", &read, "descriptor"_a, "file_offset"_a, "out"_a, "num_threads"_a);
}

}  // namespace gompfs
