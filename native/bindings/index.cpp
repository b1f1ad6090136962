// The Python module gompfs._native.index: checks of an index before SQLite reads it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "common/buffer_view.h"
#include "index/pages.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void check(nb::handle image, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& roots) {
    const BufferView view(image, PyBUF_SIMPLE);
    std::vector<Root> its_roots;
    for (const auto& [page, num_key_fields] : roots) {
        its_roots.push_back({page, num_key_fields});
    }
    const nb::gil_scoped_release release;
    check_pages(view.bytes(), its_roots);
}

}  // namespace

void bind_index(nb::module_& module) {
    module.def("check_pages", &gompfs::check, "image"_a, "roots"_a);
}

}  // namespace gompfs
