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
#include "bindings/types.h"
#include "index/pages.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

void check(const py::Buffer& image,
           const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
    const BufferView view(image, PyBUF_SIMPLE);
    std::vector<Root> roots;
    for (const auto& [page, num_key_fields] : pairs) {
        roots.push_back({page, num_key_fields});
    }
    const nb::gil_scoped_release release;
    check_pages(view.bytes(), roots);
}

void read_files(HeldFileRows* self, const py::Buffer& image, std::uint32_t dirent,
                std::uint32_t inode, std::uint32_t extent) {
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
    index.def(
        "check_pages", &check, "image"_a, "roots"_a,
        "Checks that the pages of a SQLite image form b-trees whose keys ascend, and that no page "
        "is used twice.\n\n"
        "`roots` are the root page and the number of key fields of each b-tree other than that of "
        "the schema. Raises ValueError, naming what is wrong. See native/index/pages.h.");
    nb::class_<HeldFileRows>(index, "FileRows",
                             "The names, regular files and extents of an index: its tables dirent, "
                             "inode and extent.")
        .def("__init__", &read_files, "image"_a, nb::kw_only(), "dirent"_a, "inode"_a, "extent"_a,
             "Reads the tables with these root pages from a SQLite image. Raises ValueError if a "
             "page or a field is impossible. See native/index/file_rows.h.");
}

}  // namespace gompfs
