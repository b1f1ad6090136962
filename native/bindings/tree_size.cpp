// The function gompfs._native.sources.size_of_tree.
#include "sources/tree_size.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
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

std::uint64_t size_of(const nb::bytes& root, bool one_file_system, std::vector<InodeNumber> skipped,
                      const Excludes& excludes, unsigned max_threads) {
    TreeSizeOptions options{one_file_system, std::move(skipped), nullptr, max_threads};
    if (excludes) {
        options.filter = [&excludes](const std::string& path, std::vector<TreeEntry>& entries) {
            const nb::gil_scoped_acquire acquire;
            std::erase_if(entries, [&](const TreeEntry& entry) {
                const std::string full = path + entry.name;
                return nb::cast<bool>(
                    (*excludes)(nb::bytes(full.data(), full.size()), entry.is_directory));
            });
        };
    }
    const std::string path(as_text(root));
    std::uint64_t size = 0;
    run_interruptibly([&] { size = size_of_tree(path, options); });
    return size;
}

}  // namespace

void bind_tree_size(nb::module_& sources) {
    sources.def("size_of_tree", &size_of, "root"_a, "one_file_system"_a, "skipped"_a,
                "excludes"_a.none(), "max_threads"_a,
                "Returns the size in bytes of the regular files below a directory.\n\n"
                "A file with several names counts once. What cannot be read is left out. With "
                "`one_file_system`, directories of other file systems are empty. Leaves out files "
                "with a device and inode number in `skipped`, and entries for which "
                "`excludes(path, is_directory)` is true.");
}

}  // namespace gompfs
