// The classes LoadedFiles, Contents, ContentCopier and KnownContents of gompfs._native.sources.
#include "bindings/loaded_files.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/announced.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "common/background_work.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

// (name, status, extended attributes, content, hash) of each file.
nb::list describe(const LoadedFiles& loaded) {
    nb::list result;
    for (const LoadedFile& file : loaded.files) {
        const auto [content, sha256] = to_python(file.content);
        result.append(nb::make_tuple(to_bytes(file.name), status_of(file.status),
                                     dict_of(file.xattrs), content, sha256));
    }
    return result;
}

// Rows of the table xattr. The files get numbers from first_ino on.
nb::list xattr_rows(const LoadedFiles& loaded, std::uint64_t first_ino) {
    nb::list rows;
    for (const LoadedFile& file : loaded.files) {
        for (const auto& [name, value] : file.xattrs) {
            rows.append(nb::make_tuple(first_ino, to_bytes(name), to_bytes(value)));
        }
        ++first_ino;
    }
    return rows;
}

// Rows of the table inode. The files get numbers from first_ino on; values that are given replace
// theirs.
nb::list inode_rows(const LoadedFiles& loaded, std::uint64_t first_ino,
                    std::optional<std::uint32_t> owner, std::optional<std::uint32_t> group,
                    std::optional<std::int64_t> mtime_ns) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    nb::list rows;
    for (const LoadedFile& file : loaded.files) {
        const struct stat& status = file.status;
        rows.append(nb::make_tuple(
            first_ino++, status.st_mode, owner.value_or(status.st_uid),
            group.value_or(status.st_gid), status.st_size,
            mtime_ns.value_or(status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec), 1, 0,
            nb::none()));
    }
    return rows;
}

// Rows of the table dirent.
nb::list dirent_rows(const LoadedFiles& loaded, std::uint64_t parent, std::uint64_t first_ino) {
    nb::list rows;
    for (const LoadedFile& file : loaded.files) {
        rows.append(nb::make_tuple(parent, to_bytes(file.name), first_ino++));
    }
    return rows;
}

KnownContents::Sha256 as_sha256(const nb::bytes& bytes) {
    KnownContents::Sha256 sha256;
    if (bytes.size() != sha256.size()) {
        throw std::invalid_argument("a SHA-256 has 32 bytes");
    }
    std::copy_n(static_cast<const std::uint8_t*>(bytes.data()), sha256.size(), sha256.data());
    return sha256;
}

nb::object find(const KnownContents& known, std::uint64_t size, const nb::bytes& sha256) {
    const std::optional<StoredContent> stored = known.find(size, as_sha256(sha256));
    return stored ? nb::object(nb::make_tuple(stored->is_text, stored->where)) : nb::none();
}

void add(KnownContents& known, std::uint64_t size, const nb::bytes& sha256, bool is_text,
         std::uint64_t where) {
    known.add(size, as_sha256(sha256), {is_text, where});
}

PlacedFiles place(KnownContents& known, const LoadedFiles& loaded, std::uint64_t first_ino,
                  std::uint64_t address, std::optional<std::uint64_t> text_file) {
    return place_files(loaded.files, {first_ino, address, text_file}, known);
}

nb::list in_stream(const PlacedFiles& placed) {
    nb::list result;
    for (const PlacedFiles::InStream& each : placed.in_stream) {
        result.append(nb::make_tuple(each.ino, each.address, each.size));
    }
    return result;
}

nb::list in_text(const PlacedFiles& placed) {
    nb::list result;
    for (const PlacedFiles::InText& each : placed.in_text) {
        result.append(nb::make_tuple(each.ino, each.number));
    }
    return result;
}

nb::list binary(const PlacedFiles& placed) {
    nb::list result;
    for (const std::uint64_t ino : placed.binary) {
        result.append(ino);
    }
    return result;
}

// Copies on threads of its own. Holds the memory that it copies to until `wait`.
class ContentCopier {
  public:
    ~ContentCopier() {
        const nb::gil_scoped_release release;
        work_.reset();
    }

    void copy(const Contents& contents, std::uint64_t offset, nb::handle out) {
        BufferView view(out, PyBUF_WRITABLE);
        const std::span<std::uint8_t> memory = view.mutable_bytes();
        if (offset > contents.size() || memory.size() > contents.size() - offset) {
            throw std::out_of_range("the contents end before");
        }
        held_.push_back(std::move(view));
        const nb::gil_scoped_release release;
        work_->push({contents, offset, memory}, memory.size());
    }

    void wait() {
        {
            const nb::gil_scoped_release release;
            work_->pop_all();
        }
        held_.clear();
    }

  private:
    struct Copy {
        Contents contents;
        std::uint64_t offset;
        std::span<std::uint8_t> out;
    };
    static constexpr unsigned kNumThreads = 3;  // a GPU encodes faster than one copies
    static constexpr std::size_t kMaxWaiting = std::size_t{16} << 20;

    std::vector<BufferView> held_;
    std::optional<BackgroundWork<Copy, bool>> work_{std::in_place, kNumThreads, kMaxWaiting, [] {
                                                        return [](const Copy& copy) {
                                                            copy.contents.copy(copy.offset,
                                                                               copy.out);
                                                            return true;
                                                        };
                                                    }};
};

}  // namespace

void bind_loaded_files(nb::module_& sources) {
    nb::class_<LoadedFiles>(sources, "LoadedFiles")
        .def("__len__", [](const LoadedFiles& self) { return self.files.size(); })
        .def_ro("size", &LoadedFiles::size)
        .def("describe", &describe)
        .def("xattr_rows", &xattr_rows, "first_ino"_a)
        .def("split_off", &LoadedFiles::split_off, "number"_a)
        .def("inode_rows", &inode_rows, "first_ino"_a, "owner"_a.none(), "group"_a.none(),
             "mtime_ns"_a.none())
        .def("dirent_rows", &dirent_rows, "parent"_a, "first_ino"_a);
    nb::class_<Contents>(sources, "Contents")
        .def("__len__", [](const Contents& self) { return self.files().size(); })
        .def_prop_ro("size", &Contents::size);
    nb::class_<ContentCopier>(sources, "ContentCopier")
        .def(nb::init<>())
        .def("copy", &ContentCopier::copy, "contents"_a, "offset"_a, "out"_a)
        .def("wait", &ContentCopier::wait);
    nb::class_<PlacedFiles>(sources, "PlacedFiles")
        .def_ro("new_in_stream", &PlacedFiles::new_in_stream)
        .def_ro("new_in_text", &PlacedFiles::new_in_text)
        .def_ro("num_duplicates", &PlacedFiles::num_duplicates)
        .def_prop_ro("in_stream", &in_stream)
        .def_prop_ro("in_text", &in_text)
        .def_prop_ro("binary", &binary);
    nb::class_<KnownContents>(sources, "KnownContents")
        .def(nb::init<>())
        .def("find", &find, "size"_a, "sha256"_a)
        .def("add", &add, "size"_a, "sha256"_a, "is_text"_a, "where"_a)
        .def("has_size", &KnownContents::has_size, "size"_a)
        .def("place", &place, "files"_a, "first_ino"_a, "address"_a, "text_file"_a.none());
}

}  // namespace gompfs
