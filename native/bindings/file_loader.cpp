// The class gompfs._native.sources.FileLoader and its results.
#include "sources/file_loader.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/announced.h"
#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/loaded_files.h"
#include "bindings/types.h"

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

// Size, modification time in ns and inode number of a file of the archive.
using Archived = py::Tuple<std::uint64_t, std::int64_t, std::uint64_t>;

std::optional<ArchivedFile> find_archived(const nb::dict& archived, nb::handle name) {
    if (!archived.contains(name)) {
        return std::nullopt;
    }
    const auto [size, mtime_ns, ino] =
        nb::cast<std::tuple<std::uint64_t, std::int64_t, std::uint64_t>>(archived[name]);
    return ArchivedFile{size, mtime_ns, ino};
}

AnnouncedLocalFiles load(const FileLoader& loader, const OpenDirectory& directory,
                         const py::List<nb::bytes>& names,
                         const py::Dict<nb::bytes, Archived>& archived) {
    AnnouncedLocalFiles announced{{loader.tasks, {}}, loader.skipped};
    for (const nb::handle name : names) {
        announced.files.push_back(std::make_shared<FileTask>(directory.directory, as_string(name),
                                                             loader.max_file_size,
                                                             find_archived(archived, name)));
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
    return (file.content || file.archived_ino != 0) && !file.has_xattrs && !file.has_changed &&
           status.st_mtim.tv_sec > -kMaxSeconds && status.st_mtim.tv_sec < kMaxSeconds &&
           std::find(skipped.begin(), skipped.end(), InodeNumber(status.st_dev, status.st_ino)) ==
               skipped.end();
}

// (name, errno, status, has_xattrs, has_changed, descriptor, xattrs, content, hash, archived_ino)
using OddFile = py::Tuple<nb::bytes, int, Status, bool, bool, int, XattrDict,
                          std::optional<nb::memoryview>, std::optional<nb::bytes>, std::uint64_t>;

std::optional<std::variant<LoadedFiles, OddFile>> take_files(AnnouncedLocalFiles& announced) {
    LoadedFiles run = announced.take_run([&](FileTask& task) -> std::optional<LoadedFile> {
        LocalFile& file = task.result;
        if (!is_plain(file, *announced.skipped)) {
            return std::nullopt;
        }
        return LoadedFile{task.name(), file.status, std::move(file.xattrs), std::move(file.content),
                          file.archived_ino};
    });
    if (!run.files.empty()) {
        return std::move(run);
    }
    if (announced.all_taken()) {
        return std::nullopt;
    }
    FileTask& task = *announced.files[announced.next++];
    LocalFile& file = task.result;
    const auto [content, sha256] = to_python(std::move(file.content));
    return OddFile(nb::make_tuple(to_bytes(task.name()), file.error, status_of(file.status),
                                  file.has_xattrs, file.has_changed, file.file.release(),
                                  dict_of(file.xattrs), content, sha256, file.archived_ino));
}

using NameAndKind = py::Tuple<nb::bytes, int>;

py::Tuple<int, Status, bool, OpenDirectory, py::List<NameAndKind>> take_directory(
    const AnnouncedDirectory& announced) {
    LocalDirectory& listed = announced.wait().result;
    py::List<NameAndKind> names;
    for (const LocalDirectory::Name& each : listed.names) {
        names.append(nb::make_tuple(to_bytes(each.name), static_cast<int>(each.kind)));
    }
    return nb::make_tuple(listed.error, status_of(listed.status), listed.has_xattrs,
                          OpenDirectory{std::move(listed.directory)}, names);
}

}  // namespace

void bind_file_loader(nb::module_& sources) {
    nb::class_<OpenDirectory>(
        sources, "OpenDirectory",
        "A directory that is open as long as this object, or a result that was announced for it, "
        "lives.")
        .def(
            "__init__",
            [](OpenDirectory* self, int descriptor) {
                new (self) OpenDirectory{std::make_shared<Descriptor>(descriptor)};
            },
            "descriptor"_a, "Closes `descriptor` later.")
        .def_prop_ro(
            "descriptor", [](const OpenDirectory& self) { return self.directory->number(); },
            "The descriptor, -1 if the directory could not be opened.");
    nb::class_<AnnouncedLocalFiles>(sources, "AnnouncedFiles")
        .def("take", &take_files,
             "Returns the next files, or one that cannot be in a LoadedFiles, or None after the "
             "last.\n\n"
             "A LoadedFiles has 4 MiB, or one file more. Where it ends depends on the files alone. "
             "Another file is (name, errno, status, has_xattrs, has_changed, descriptor, xattrs, "
             "content, SHA-256, archived_ino), with a status as from `LoadedFiles.describe`. "
             "`errno` is 0 if the "
             "file could be opened. `has_xattrs` is set if there are extended attributes that are "
             "not in `xattrs`, or if they cannot be listed. `has_changed` says whether the file "
             "changed while it was read. The caller closes `descriptor` unless it is -1. There is "
             "no content if the file is not regular, has several names or holes, is too large, or "
             "could not be read. `archived_ino` is the inode number of a file that the archive has "
             "unchanged, which has one name and was not read; otherwise 0.");
    nb::class_<AnnouncedDirectory>(sources, "AnnouncedDirectory")
        .def(
            "take", &take_directory,
            "Returns (errno, status, has_xattrs, directory, names in byte order with their kinds). "
            "Call it once.\n\n"
            "A kind is 0 for a directory, 1 for a regular file and 2 for anything else.");
    nb::class_<FileLoader>(sources, "FileLoader",
                           "Opens, reads and lists files ahead of a thread that walks a tree. "
                           "Results can be taken in any order.")
        .def(
            "__init__",
            [](FileLoader* self, std::uint64_t max_file_size, std::uint64_t capacity,
               unsigned max_threads, std::vector<InodeNumber> skipped) {
                new (self) FileLoader{
                    make_tasks({capacity, max_threads}), max_file_size,
                    std::make_shared<const std::vector<InodeNumber>>(std::move(skipped))};
            },
            "max_file_size"_a, "capacity"_a, "max_threads"_a, "skipped"_a,
            "Files of more than `max_file_size` bytes are only opened. Up to `capacity` bytes are "
            "read ahead.\n\n"
            "Files with a device and inode number in `skipped` are never in a LoadedFiles.")
        .def("load", &load, "directory"_a, "names"_a, "archived"_a,
             "Announces files of a directory. Symlinks are not followed.\n\n"
             "`archived` has the size, the modification time in ns, and the inode number of files "
             "of an archive, by name. A file of one name that has this size and time is not read.")
        .def("list", &list, "parent"_a.none(), "name"_a, "device"_a.none() = nb::none(),
             "Announces a directory. Without a parent, `name` is a path, which may lead to it "
             "through a symlink.\n\n"
             "With `device`, a directory of another file system counts as empty.");
}

}  // namespace gompfs
