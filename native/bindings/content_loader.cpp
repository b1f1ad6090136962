// The class gompfs._native.blocks.ContentLoader.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings/announced.h"
#include "bindings/bindings.h"
#include "bindings/loaded_files.h"
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

// A file that is read, with what else is known of it.
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

AnnouncedContents announce_files(const ContentLoader& loader, const nb::list& files) {
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

// Returns a LoadedFiles, the index of a file that cannot be read, or None if all have been taken.
nb::object take(AnnouncedContents& announced) {
    LoadedFiles run = announced.take_run([](NamedContentTask& task) -> std::optional<LoadedFile> {
        if (!task.result) {
            return std::nullopt;
        }
        task.known.content = std::move(task.result);
        return std::move(task.known);
    });
    if (!run.files.empty()) {
        return nb::cast(std::move(run));
    }
    return announced.all_taken() ? nb::none() : nb::object(nb::int_(announced.next++));
}

}  // namespace

void bind_content_loader(nb::module_& blocks) {
    nb::class_<AnnouncedContents>(blocks, "AnnouncedContents").def("take", &take);
    nb::class_<ContentLoader>(blocks, "ContentLoader")
        .def("__init__", &init, "reader"_a, "capacity"_a, "max_threads"_a)
        .def("load", &announce_files, "files"_a);
}

}  // namespace gompfs
