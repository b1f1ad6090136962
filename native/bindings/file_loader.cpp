// The class gompfs._native.sources.FileLoader and its results.
#include "sources/file_loader.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/announced.h"
#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/loaded_files.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

// Not the caster of shared_ptr: its pointers need the GIL when a thread of the loader drops them.
struct OpenDirectory {
    std::shared_ptr<Descriptor> directory;
};

std::string as_string(nb::handle name) {
    const auto bytes = nb::cast<nb::bytes>(name);
    return {bytes.c_str(), bytes.size()};
}

struct FileLoader {
    std::shared_ptr<TasksAhead> tasks;
    std::uint64_t max_file_size;
    std::shared_ptr<const std::vector<InodeNumber>> skipped;
};

struct AnnouncedLocalFiles : AnnouncedFiles<FileTask> {
    std::shared_ptr<const std::vector<InodeNumber>> skipped;
};
using AnnouncedDirectory = Announced<DirectoryTask>;

AnnouncedLocalFiles load(const FileLoader& loader, const OpenDirectory& directory,
                         const nb::list& names) {
    AnnouncedLocalFiles announced{{loader.tasks, {}}, loader.skipped};
    for (const nb::handle name : names) {
        announced.files.push_back(
            std::make_shared<FileTask>(directory.directory, as_string(name), loader.max_file_size));
        loader.tasks->push(announced.files.back());
    }
    return announced;
}

AnnouncedDirectory list(const FileLoader& loader, std::optional<OpenDirectory> parent,
                        const nb::bytes& name, std::optional<dev_t> device) {
    return announce<DirectoryTask>(loader.tasks, parent ? parent->directory : nullptr,
                                   as_string(name), device);
}

// Whether there is nothing more to know of a file than what a LoadedFile says.
bool is_plain(const LocalFile& file, const std::vector<InodeNumber>& skipped) {
    constexpr auto kMaxSeconds = std::numeric_limits<std::int64_t>::max() / 1'000'000'000;
    const struct stat& status = file.status;
    return file.content && !file.has_xattrs && !file.has_changed &&
           status.st_mtim.tv_sec > -kMaxSeconds && status.st_mtim.tv_sec < kMaxSeconds &&
           std::find(skipped.begin(), skipped.end(), InodeNumber(status.st_dev, status.st_ino)) ==
               skipped.end();
}

// Returns a LoadedFiles, a tuple for a file that is not plain, or None if all have been taken.
nb::object take_files(AnnouncedLocalFiles& announced) {
    LoadedFiles run = announced.take_run([&](FileTask& task) -> std::optional<LoadedFile> {
        LocalFile& file = task.result;
        if (!is_plain(file, *announced.skipped)) {
            return std::nullopt;
        }
        return LoadedFile{task.name(), file.status, std::move(file.xattrs),
                          std::move(file.content)};
    });
    if (!run.files.empty()) {
        return nb::cast(std::move(run));
    }
    if (announced.all_taken()) {
        return nb::none();
    }
    FileTask& task = *announced.files[announced.next++];
    LocalFile& file = task.result;
    const auto [content, sha256] = to_python(std::move(file.content));
    return nb::make_tuple(to_bytes(task.name()), file.error, status_of(file.status),
                          file.has_xattrs, file.has_changed, file.file.release(),
                          dict_of(file.xattrs), content, sha256);
}

nb::object take_directory(const AnnouncedDirectory& announced) {
    LocalDirectory& listed = announced.wait().result;
    nb::list names;
    for (const LocalDirectory::Name& each : listed.names) {
        names.append(nb::make_tuple(to_bytes(each.name), static_cast<int>(each.kind)));
    }
    return nb::make_tuple(listed.error, status_of(listed.status), listed.has_xattrs,
                          OpenDirectory{std::move(listed.directory)}, names);
}

}  // namespace

void bind_file_loader(nb::module_& sources) {
    nb::class_<OpenDirectory>(sources, "OpenDirectory")
        .def(
            "__init__",
            [](OpenDirectory* self, int descriptor) {
                new (self) OpenDirectory{std::make_shared<Descriptor>(descriptor)};
            },
            "descriptor"_a)
        .def_prop_ro("descriptor",
                     [](const OpenDirectory& self) { return self.directory->number(); });
    nb::class_<AnnouncedLocalFiles>(sources, "AnnouncedFiles").def("take", &take_files);
    nb::class_<AnnouncedDirectory>(sources, "AnnouncedDirectory").def("take", &take_directory);
    nb::class_<FileLoader>(sources, "FileLoader")
        .def(
            "__init__",
            [](FileLoader* self, std::uint64_t max_file_size, std::uint64_t capacity,
               unsigned max_threads, std::vector<InodeNumber> skipped) {
                new (self) FileLoader{
                    make_tasks({capacity, max_threads}), max_file_size,
                    std::make_shared<const std::vector<InodeNumber>>(std::move(skipped))};
            },
            "max_file_size"_a, "capacity"_a, "max_threads"_a, "skipped"_a)
        .def("load", &load, "directory"_a, "names"_a)
        .def("list", &list, "parent"_a.none(), "name"_a, "device"_a.none() = nb::none());
}

}  // namespace gompfs
