// The class gompfs._native.sources.FileLoader and its results.
#include "sources/file_loader.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <memory>
#include <string>
#include <utility>

#include "bindings/announced.h"
#include "bindings/bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

// Not the caster of shared_ptr: its pointers need the interpreter's lock when a thread of the
// loader drops them.
struct OpenDirectory {
    std::shared_ptr<Descriptor> directory;
};

std::string as_string(const nb::bytes& name) { return {name.c_str(), name.size()}; }

// (mode, uid, gid, seconds and nanoseconds of mtime, size, device, number)
nb::tuple status_of(const struct stat& status) {
    return nb::make_tuple(status.st_mode, status.st_uid, status.st_gid, status.st_mtim.tv_sec,
                          status.st_mtim.tv_nsec, status.st_size, status.st_dev, status.st_ino);
}

struct FileLoader {
    std::shared_ptr<TasksAhead> tasks;
    std::uint64_t max_file_size;
};
using AnnouncedFile = Announced<FileTask>;
using AnnouncedDirectory = Announced<DirectoryTask>;

AnnouncedFile load(const FileLoader& loader, const OpenDirectory& directory,
                   const nb::bytes& name) {
    return announce<FileTask>(loader.tasks, directory.directory, as_string(name),
                              loader.max_file_size);
}

AnnouncedDirectory list(const FileLoader& loader, std::optional<OpenDirectory> parent,
                        const nb::bytes& name, std::optional<dev_t> device) {
    return announce<DirectoryTask>(loader.tasks, parent ? parent->directory : nullptr,
                                   as_string(name), device);
}

nb::object take_file(const AnnouncedFile& announced) {
    LocalFile& file = announced.wait().result;
    const auto [content, sha256] = to_python(std::move(file.content));
    return nb::make_tuple(file.error, status_of(file.status), file.has_xattrs, file.has_changed,
                          file.file.release(), content, sha256);
}

nb::object take_directory(const AnnouncedDirectory& announced) {
    LocalDirectory& listed = announced.wait().result;
    nb::list names;
    for (const LocalDirectory::Name& each : listed.names) {
        names.append(nb::make_tuple(nb::bytes(each.name.data(), each.name.size()),
                                    static_cast<int>(each.kind)));
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
    nb::class_<AnnouncedFile>(sources, "AnnouncedFile").def("take", &take_file);
    nb::class_<AnnouncedDirectory>(sources, "AnnouncedDirectory").def("take", &take_directory);
    nb::class_<FileLoader>(sources, "FileLoader")
        .def(
            "__init__",
            [](FileLoader* self, std::uint64_t max_file_size, std::uint64_t capacity,
               unsigned max_threads) {
                new (self) FileLoader{make_tasks({capacity, max_threads}), max_file_size};
            },
            "max_file_size"_a, "capacity"_a, "max_threads"_a)
        .def("load", &load, "directory"_a, "name"_a)
        .def("list", &list, "parent"_a.none(), "name"_a, "device"_a.none() = nb::none());
}

}  // namespace gompfs
