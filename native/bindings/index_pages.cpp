// What C++ reads of the pages of an index itself, in gompfs._native.index: checks before SQLite
// reads it, and the rows of files.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/held_file_rows.h"
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

void read_files(HeldFileRows* self, nb::handle image, std::uint32_t dirent, std::uint32_t inode,
                std::uint32_t extent) {
    BufferView view(image, PyBUF_SIMPLE);
    FileRows rows;
    {
        const nb::gil_scoped_release release;
        rows = read_file_rows(view.bytes(), {dirent, inode, extent});
    }
    new (self) HeldFileRows{std::move(view), std::move(rows)};
}

}  // namespace

void bind_index_pages(nb::module_& index) {
    index.def("check_pages", &check, "image"_a, "roots"_a);
    nb::class_<HeldFileRows>(index, "FileRows")
        .def("__init__", &read_files, "image"_a, nb::kw_only(), "dirent"_a, "inode"_a, "extent"_a);
}

}  // namespace gompfs
