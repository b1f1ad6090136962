// The class gompfs._native.blocks.ContentLoader.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "bindings/announced.h"
#include "bindings/bindings.h"
#include "bindings/loaded_files.h"
#include "bindings/types.h"
#include "blocks/content_task.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

struct ContentLoader {
    std::shared_ptr<TasksAhead> tasks;
    BlockReader& reader;
};

void init(ContentLoader* self, nb::typed<nb::object, BlockReader> reader, std::uint64_t capacity,
          unsigned max_threads) {
    auto& native = nb::cast<BlockReader&>(reader);
    new (self) ContentLoader{make_tasks({capacity, max_threads}, std::move(reader)), native};
}

// Reads the content of a file. `known` has the name, status and extended attributes of the file.
struct NamedContentTask : ContentTask {
    NamedContentTask(BlockReader& reader, std::uint64_t ino, LoadedFile file)
        : ContentTask(reader, ino, static_cast<std::uint64_t>(file.status.st_size)),
          known(std::move(file)) {}

    LoadedFile known;
};

using AnnouncedContents = AnnouncedFiles<NamedContentTask>;

// A file of the row (ino, mode, uid, gid, size, mtime in ns) of an index.
LoadedFile file_of(const nb::bytes& name, const nb::tuple& row, const nb::dict& xattrs) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    LoadedFile file;
    file.name.assign(name.c_str(), name.size());
    file.status.st_mode = nb::cast<mode_t>(row[1]);
    file.status.st_uid = nb::cast<uid_t>(row[2]);
    file.status.st_gid = nb::cast<gid_t>(row[3]);
    file.status.st_size = nb::cast<off_t>(row[4]);
    const auto mtime = nb::cast<std::int64_t>(row[5]);
    file.status.st_mtim.tv_nsec = (mtime % kSecond + kSecond) % kSecond;
    file.status.st_mtim.tv_sec = (mtime - file.status.st_mtim.tv_nsec) / kSecond;
    for (const auto& [key, value] : xattrs) {
        const auto from = nb::cast<nb::bytes>(key), to = nb::cast<nb::bytes>(value);
        file.xattrs.emplace_back(std::string(from.c_str(), from.size()),
                                 std::string(to.c_str(), to.size()));
    }
    return file;
}

// Name, inode and extended attributes.
using NamedInode = py::Tuple<nb::bytes, py::Inode, py::Dict<nb::bytes, nb::bytes>>;

AnnouncedContents announce_files(const ContentLoader& loader, const py::List<NamedInode>& files) {
    AnnouncedContents announced{loader.tasks, {}};
    for (const nb::handle each : files) {
        const auto file = nb::cast<nb::tuple>(each);
        const auto row = nb::cast<nb::tuple>(file[1]);
        announced.files.push_back(std::make_shared<NamedContentTask>(
            loader.reader, nb::cast<std::uint64_t>(row[0]),
            file_of(nb::cast<nb::bytes>(file[0]), row, nb::cast<nb::dict>(file[2]))));
        loader.tasks->push(announced.files.back());
    }
    return announced;
}

std::optional<std::variant<LoadedFiles, std::size_t>> take(AnnouncedContents& announced) {
    LoadedFiles run = announced.take_run([](NamedContentTask& task) -> std::optional<LoadedFile> {
        if (!task.result) {
            return std::nullopt;
        }
        task.known.content = std::move(task.result);
        return std::move(task.known);
    });
    if (!run.files.empty()) {
        return std::move(run);
    }
    if (announced.all_taken()) {
        return std::nullopt;
    }
    return announced.next++;
}

}  // namespace

void bind_content_loader(nb::module_& blocks) {
    nb::class_<AnnouncedContents>(blocks, "AnnouncedContents")
        .def("take", &take,
             "Returns the next files, the index of the next one if it cannot be read, or None if "
             "all have been taken.");
    nb::class_<ContentLoader>(blocks, "ContentLoader",
                              "Reads files of an archive before they are needed.")
        .def("__init__", &init, "reader"_a, "capacity"_a, "max_threads"_a,
             "Up to `capacity` bytes are read ahead.")
        .def("load", &announce_files, "files"_a,
             "Announces files of one directory, in byte order: names, inodes and extended "
             "attributes. They must be regular files of one name and without holes.");
}

}  // namespace gompfs
