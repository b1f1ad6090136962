// The class gompfs._native.blocks.ContentLoader.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>

#include "bindings/announced.h"
#include "bindings/bindings.h"
#include "blocks/content_task.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

struct ContentLoader {
    std::shared_ptr<TasksAhead> tasks;
    BlockReader& reader;
};

void init(ContentLoader* self, nb::object reader, std::uint64_t capacity, unsigned max_threads) {
    auto& native = nb::cast<BlockReader&>(reader);
    new (self) ContentLoader{make_tasks({capacity, max_threads}, std::move(reader)), native};
}

Announced<ContentTask> announce_content(const ContentLoader& loader, std::uint64_t ino,
                                        std::uint64_t size) {
    return announce<ContentTask>(loader.tasks, loader.reader, ino, size);
}

nb::tuple take(const Announced<ContentTask>& announced) {
    const auto [content, sha256] = to_python(std::move(announced.wait().result));
    return nb::make_tuple(content, sha256);
}

}  // namespace

void bind_content_loader(nb::module_& blocks) {
    nb::class_<Announced<ContentTask>>(blocks, "AnnouncedContent").def("take", &take);
    nb::class_<ContentLoader>(blocks, "ContentLoader")
        .def("__init__", &init, "reader"_a, "capacity"_a, "max_threads"_a)
        .def("load", &announce_content, "ino"_a, "size"_a);
}

}  // namespace gompfs
