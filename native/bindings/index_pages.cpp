// Checks of the pages of an index before SQLite reads it, in gompfs._native.index.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "index/pages.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void check(nb::handle image, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
    const BufferView view(image, PyBUF_SIMPLE);
    std::vector<Root> roots;
    for (const auto& [page, num_key_fields] : pairs) {
        roots.push_back({page, num_key_fields});
    }
    const nb::gil_scoped_release release;
    check_pages(view.bytes(), roots);
}

}  // namespace

void bind_index_pages(nb::module_& index) {
    index.def("check_pages", &check, "image"_a, "roots"_a);
}

}  // namespace gompfs
