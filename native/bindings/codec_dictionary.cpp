// Shared dictionaries in gompfs._native.codec: Dictionary and choose_dictionary.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/block_views.h"
#include "bindings/buffer_view.h"
#include "bindings/interruptible.h"
#include "bindings/shared_symbols.h"
#include "bindings/types.h"
#include "codec/dictionary.h"
#include "codec/dictionary_choice.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void init(SharedDictionary* self, const py::Buffer& content) {
    const BufferView view(content, PyBUF_SIMPLE);
    new (self) SharedDictionary(view.bytes());
}

nb::bytes choose(const py::Sequence<py::Buffer>& samples, std::size_t size, unsigned num_threads) {
    const BlockViews views(samples);
    std::vector<std::uint8_t> chosen;
    run_interruptibly([&] { chosen = choose_dictionary(views.blocks(), size, num_threads); });
    return to_bytes(chosen);
}

}  // namespace

void bind_codec_dictionary(nb::module_& codec) {
    nb::class_<SharedDictionary>(codec, "Dictionary",
                                 "Bytes from which matches of all blocks may copy. Thread-safe.")
        .def("__init__", &init, "content"_a,
             "Copies the bytes. Raises ValueError unless there are 1 byte to 1 MiB.")
        .def_prop_ro(
            "content", [](const SharedDictionary& self) { return to_bytes(self.content()); },
            "A copy of the bytes.")
        .def_prop_ro(
            "table", [](const SharedDictionary& self) { return SharedSymbols{self.table()}; },
            "What `decode_blocks` needs, in place of the symbols of a part.");
    codec.def("choose_dictionary", &choose, "samples"_a, "size"_a, "num_threads"_a,
              "Returns what blocks of the samples have in common, the most useful first: at most "
              "`size` bytes.\n\n"
              "Returns fewer bytes, or none, if less occurs repeatedly. The same samples always "
              "give the same bytes. Raises ValueError if `size` exceeds 1 MiB.");
}

}  // namespace gompfs
