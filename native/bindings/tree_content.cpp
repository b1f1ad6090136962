// The class gompfs._native.sources.TreeContent.
#include "sources/tree_content.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using Excludes = std::optional<py::Callable<bool(nb::bytes, bool)>>;

TreeContent::Filter filter_of(const Excludes& excludes) {
    if (!excludes) {
        return nullptr;
    }
    return [&excludes](const std::string& path, TreeContent::Entries& entries) {
        const nb::gil_scoped_acquire acquire;
        std::erase_if(entries, [&](const TreeContent::Entry& entry) {
            const std::string full = path + entry.name;
            return nb::cast<bool>(
                (*excludes)(nb::bytes(full.data(), full.size()), entry.is_directory));
        });
    };
}

void init(TreeContent* self, const nb::bytes& root, bool one_file_system,
          std::vector<InodeNumber> skipped, const Excludes& excludes, unsigned max_threads) {
    const TreeContent::Options options{one_file_system, std::move(skipped), filter_of(excludes),
                                       max_threads};
    std::optional<TreeContent> content;
    run_interruptibly([&] { content.emplace(std::string(as_text(root)), options); });
    new (self) TreeContent(std::move(*content));
}

nb::bytes read(const TreeContent& content, std::uint64_t offset, std::uint64_t size) {
    if (offset > content.size() || size > content.size() - offset) {
        throw std::out_of_range("the content ends before");
    }
    std::vector<std::uint8_t> bytes;
    run_interruptibly([&] { bytes = content.read(offset, size); });
    return to_bytes(bytes);
}

}  // namespace

void bind_tree_content(nb::module_& sources) {
    nb::class_<TreeContent>(
        sources, "TreeContent",
        "The regular files below a directory, as if their contents were one file.\n\n"
        "They come depth first, the names of each directory in byte order, and only under the "
        "first name of each file. What cannot be read is left out.")
        .def("__init__", &init, "root"_a, "one_file_system"_a, "skipped"_a, "excludes"_a.none(),
             "max_threads"_a,
             "Walks the tree. With `one_file_system`, directories of other file systems are "
             "empty.\n\n"
             "Leaves out files with a device and inode number in `skipped`, and entries for which "
             "`excludes(path, is_directory)` is true.")
        .def_prop_ro("size", &TreeContent::size,
                     "The size of all files in bytes, as it was during the walk.")
        .def("read", &read, "offset"_a, "size"_a,
             "Returns a range of the content, without bytes that cannot be read any more. Raises "
             "IndexError.");
}

}  // namespace gompfs
