// The columns of an index and the SQLite image that is built from them, in gompfs._native.index.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/held_bytes.h"
#include "bindings/held_file_rows.h"
#include "bindings/types.h"
#include "index/changes.h"
#include "index/image.h"
#include "index/index_rows.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using Tables = std::vector<std::pair<std::string, std::string>>;

std::vector<TableStatement> statements_of(const Tables& tables) {
    std::vector<TableStatement> statements;
    for (const auto& [name, sql] : tables) {
        statements.push_back({name, sql});
    }
    return statements;
}

// A view of bytes that it owns.
nb::memoryview view_of_vector(auto bytes) {
    auto held = std::make_shared<decltype(bytes)>(std::move(bytes));
    return view_of({held->data(), held->size(), true, held});
}

nb::memoryview image_of(const py::Buffer& columns, const Tables& tables) {
    const BufferView view(columns, PyBUF_SIMPLE);
    const std::vector<TableStatement> statements = statements_of(tables);
    LargeVector<std::uint8_t> image;
    {
        const nb::gil_scoped_release release;
        image = build_image(view.bytes(), statements);
    }
    return view_of_vector(std::move(image));
}

void write_image_of(const py::Buffer& columns, const Tables& tables, int descriptor) {
    const BufferView view(columns, PyBUF_SIMPLE);
    const std::vector<TableStatement> statements = statements_of(tables);
    const nb::gil_scoped_release release;
    write_image(view.bytes(), statements, descriptor);
}

std::pair<nb::memoryview, std::vector<std::uint64_t>> to_python(StoredColumns columns) {
    return {view_of_vector(std::move(columns.bytes)), std::move(columns.ends)};
}

std::pair<nb::memoryview, std::vector<std::uint64_t>> columns_of(int descriptor) {
    StoredColumns columns;
    {
        const nb::gil_scoped_release release;
        columns = columns_of_image(descriptor);
    }
    return to_python(std::move(columns));
}

std::uint64_t unpacked_size_of(const py::Buffer& columns, bool is_changes) {
    const BufferView view(columns, PyBUF_SIMPLE);
    const auto kind = is_changes ? IndexKind::changes : IndexKind::whole;
    return IndexColumns(view.bytes(), kind).unpacked_size();
}

nb::memoryview merged(const std::vector<py::Buffer>& columns) {
    std::vector<BufferView> views;
    std::vector<Bytes> bytes;
    views.reserve(columns.size());
    for (const py::Buffer& each : columns) {
        bytes.push_back(views.emplace_back(each, PyBUF_SIMPLE).bytes());
    }
    if (bytes.empty()) {
        throw std::invalid_argument("there are no columns");
    }
    std::vector<std::uint8_t> merged;
    {
        const nb::gil_scoped_release release;
        merged = merge_columns(bytes);
    }
    return view_of_vector(std::move(merged));
}

std::pair<nb::memoryview, std::vector<std::uint64_t>> changes(const py::Buffer& before,
                                                              const py::Buffer& after) {
    const BufferView from(before, PyBUF_SIMPLE), to(after, PyBUF_SIMPLE);
    StoredColumns columns;
    {
        const nb::gil_scoped_release release;
        columns = changes_between(from.bytes(), to.bytes());
    }
    return to_python(std::move(columns));
}

void read_files(HeldFileRows* self, const py::Buffer& columns) {
    BufferView view(columns, PyBUF_SIMPLE);
    FileRows rows;
    {
        const nb::gil_scoped_release release;
        rows = read_file_rows(view.bytes());
    }
    new (self) HeldFileRows{std::move(view), std::move(rows)};
}

}  // namespace

void bind_index_columns(nb::module_& index) {
    index.def("image_of", &image_of, "columns"_a, "tables"_a,
              "Returns the SQLite image for the columns of an index.\n\n"
              "`tables` are the name of each table and the statement that creates it. Raises "
              "ValueError, naming what is wrong, if the columns are damaged.");
    index.def("write_image_of", &write_image_of, "columns"_a, "tables"_a, "descriptor"_a,
              "Writes the image that image_of returns to an empty file. Raises OSError, too.");
    index.def("columns_of", &columns_of, "descriptor"_a,
              "Returns the columns for the tables in a SQLite image, and where each column "
              "ends.\n\n"
              "`descriptor` is a file that SQLite has written for this process. Raises ValueError "
              "if it has values that the columns cannot store.");
    index.def("merge_columns", &merged, "columns"_a,
              "Returns the columns of the whole index that changes lead to.\n\n"
              "The first columns are those of a whole index, the others those of changes, oldest "
              "first. Raises ValueError, naming what is wrong, if they are damaged.");
    index.def("changes_between", &changes, "before"_a, "after"_a,
              "Returns the columns of the changes that lead from one whole index to another, and "
              "where each column ends.\n\n"
              "Raises ValueError if columns are damaged, or if `after` lacks a segment or section "
              "of `before`.");
    index.def("unpacked_size", &unpacked_size_of, "columns"_a, "is_changes"_a = false,
              "Returns the size of the columns of an index or of changes, and 64 bytes for each "
              "of their rows.\n\n"
              "Raises ValueError if they cannot be cut into columns.");
    nb::class_<HeldFileRows>(index, "FileRows",
                             "The names, regular files and extents of an index: its tables dirent, "
                             "inode and extent.")
        .def("__init__", &read_files, "columns"_a,
             "Reads the tables from the columns of an index. Raises ValueError if a field is "
             "impossible. See native/index/file_rows.h.");
}

}  // namespace gompfs
