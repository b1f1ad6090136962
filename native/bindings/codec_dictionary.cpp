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
#include "codec/dictionary.h"
#include "codec/dictionary_choice.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void init(SharedDictionary* self, nb::handle content) {
    const BufferView view(content, PyBUF_SIMPLE);
    new (self) SharedDictionary(view.bytes());
}

nb::bytes choose(nb::sequence samples, std::size_t size, unsigned num_threads) {
    const BlockViews views(samples);
    std::vector<std::uint8_t> chosen;
    run_interruptibly([&] { chosen = choose_dictionary(views.blocks(), size, num_threads); });
    return to_bytes(chosen);
}

}  // namespace

void bind_codec_dictionary(nb::module_& codec) {
    nb::class_<SharedDictionary>(codec, "Dictionary")
        .def("__init__", &init, "content"_a)
        .def_prop_ro("content",
                     [](const SharedDictionary& self) { return to_bytes(self.content()); })
        .def_prop_ro("table",
                     [](const SharedDictionary& self) { return SharedSymbols{self.table()}; });
    codec.def("choose_dictionary", &choose, "samples"_a, "size"_a, "num_threads"_a);
}

}  // namespace gompfs
