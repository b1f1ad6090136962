// The class gompfs._native.sources.TreeContent.
#include "sources/tree_content.h"

#include <nanobind/nanobind.h>
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

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

// Calls excludes(path, is_directory) for each entry.
TreeContent::Filter filter_of(const nb::object& excludes) {
    if (excludes.is_none()) {
        return nullptr;
    }
    return [&excludes](const std::string& path, TreeContent::Entries& entries) {
        const nb::gil_scoped_acquire acquire;
        std::erase_if(entries, [&](const TreeContent::Entry& entry) {
            const std::string full = path + entry.name;
            return nb::cast<bool>(
                excludes(nb::bytes(full.data(), full.size()), entry.is_directory));
        });
    };
}

void init(TreeContent* self, const nb::bytes& root, bool one_file_system,
          std::vector<InodeNumber> skipped, const nb::object& excludes, unsigned max_threads) {
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
    nb::class_<TreeContent>(sources, "TreeContent")
        .def("__init__", &init, "root"_a, "one_file_system"_a, "skipped"_a, "excludes"_a.none(),
             "max_threads"_a)
        .def_prop_ro("size", &TreeContent::size)
        .def("read", &read, "offset"_a, "size"_a);
}

}  // namespace gompfs
