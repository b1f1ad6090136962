// The classes LoadedFiles, Contents, ContentCopier, KnownContents and PathTable of
// gompfs._native.sources.
#include "bindings/loaded_files.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/announced.h"
#include "bindings/bindings.h"
#include "bindings/buffer_view.h"
#include "bindings/types.h"
#include "common/background_work.h"
#include "sources/shared_runs.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

using Description = py::Tuple<nb::bytes, Status, XattrDict, std::optional<nb::memoryview>,
                              std::optional<nb::bytes>, std::uint64_t>;

py::List<Description> describe(const LoadedFiles& loaded) {
    py::List<Description> result;
    for (const LoadedFile& file : loaded.files) {
        const auto [content, sha256] = to_python(file.content);
        result.append(nb::make_tuple(to_bytes(file.name), status_of(file.status),
                                     dict_of(file.xattrs), content, sha256, file.archived_ino));
    }
    return result;
}

using XattrRow = py::Tuple<std::uint64_t, nb::bytes, nb::bytes>;

py::List<XattrRow> xattr_rows(const LoadedFiles& loaded, std::uint64_t first_ino) {
    py::List<XattrRow> rows;
    for (const LoadedFile& file : loaded.files) {
        for (const auto& [name, value] : file.xattrs) {
            rows.append(nb::make_tuple(first_ino, to_bytes(name), to_bytes(value)));
        }
        ++first_ino;
    }
    return rows;
}

using Row = py::Tuple<nb::object, nb::ellipsis>;

py::List<Row> inode_rows(const LoadedFiles& loaded, std::uint64_t first_ino,
                         std::optional<std::uint32_t> owner, std::optional<std::uint32_t> group,
                         std::optional<std::int64_t> mtime_ns) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    py::List<Row> rows;
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

py::List<Row> dirent_rows(const LoadedFiles& loaded, std::uint64_t parent,
                          std::uint64_t first_ino) {
    py::List<Row> rows;
    for (const LoadedFile& file : loaded.files) {
        rows.append(nb::make_tuple(parent, to_bytes(file.name), first_ino++));
    }
    return rows;
}

Sha256::Digest as_sha256(const nb::bytes& bytes) {
    Sha256::Digest sha256;
    if (bytes.size() != sha256.size()) {
        throw std::invalid_argument("a SHA-256 has 32 bytes");
    }
    std::copy_n(static_cast<const std::uint8_t*>(bytes.data()), sha256.size(), sha256.data());
    return sha256;
}

std::optional<std::pair<StoredContent::Place, std::uint64_t>> find(const KnownContents& known,
                                                                   const nb::bytes& sha256) {
    const std::optional<StoredContent> stored = known.find(as_sha256(sha256));
    return stored ? std::optional(std::pair(stored->place, stored->where)) : std::nullopt;
}

void add(KnownContents& known, const nb::bytes& sha256, StoredContent::Place place,
         std::uint64_t where) {
    known.add(as_sha256(sha256), {place, where});
}

using NameAndSize = py::Tuple<nb::bytes, std::uint64_t>;

py::List<NameAndSize> unknown(const KnownContents& known, const LoadedFiles& loaded) {
    py::List<NameAndSize> result;
    for (const LoadedFile* file : unknown_files(loaded.files, known)) {
        result.append(nb::make_tuple(to_bytes(file->name), file->size()));
    }
    return result;
}

using NamedContent = py::Tuple<nb::bytes, std::optional<nb::memoryview>, std::optional<nb::bytes>>;

py::List<NamedContent> unknown_contents(const KnownContents& known, const LoadedFiles& loaded) {
    py::List<NamedContent> result;
    for (const LoadedFile* file : unknown_files(loaded.files, known)) {
        const auto [content, sha256] = to_python(file->content);
        result.append(nb::make_tuple(to_bytes(file->name), content, sha256));
    }
    return result;
}

using Run = py::Tuple<std::size_t, std::size_t, std::size_t>;

py::List<Run> shared(const py::Buffer& content, const py::Buffer& base, std::size_t least) {
    const BufferView content_view(content, PyBUF_SIMPLE), base_view(base, PyBUF_SIMPLE);
    std::vector<SharedRun> runs;
    {
        const nb::gil_scoped_release release;
        runs = shared_runs(content_view.bytes(), base_view.bytes(), least);
    }
    py::List<Run> result;
    for (const SharedRun& run : runs) {
        result.append(nb::make_tuple(run.begin, run.base_begin, run.size));
    }
    return result;
}

PlacedFiles place(KnownContents& known, const LoadedFiles& loaded, std::uint64_t first_ino,
                  std::optional<std::uint64_t> text_file, unsigned num_threads) {
    const nb::gil_scoped_release release;
    return place_files(loaded.files, {first_ino, text_file}, known, num_threads);
}

using PositionAndSize = py::Tuple<std::uint64_t, std::uint64_t>;

py::List<PositionAndSize> add_piece(KnownContents& known, const py::Buffer& piece,
                                    unsigned num_threads) {
    const BufferView view(piece, PyBUF_SIMPLE);
    StreamContents::Ranges ranges;
    {
        const nb::gil_scoped_release release;
        ranges = known.stream().add_piece(view.bytes(), num_threads);
    }
    py::List<PositionAndSize> result;
    for (const StreamContents::Range& range : ranges) {
        result.append(nb::make_tuple(range.begin, range.size));
    }
    return result;
}

// Numbers of paths.
struct PathTable {
    explicit PathTable(const std::string& directory) : numbers(directory) {}

    DigestTable numbers;
};

Sha256::Digest digest_of(const nb::bytes& path) {
    Sha256 sha256;
    sha256.update({static_cast<const std::uint8_t*>(path.data()), path.size()});
    return sha256.digest();
}

void set_number(PathTable& table, const nb::bytes& path, std::uint64_t number) {
    table.numbers.set(digest_of(path), number);
}

std::uint64_t get_number(const PathTable& table, const nb::bytes& path) {
    return table.numbers.find(digest_of(path)).value_or(0);
}

py::List<PositionAndSize> runs(const KnownContents& known, std::uint64_t number) {
    py::List<PositionAndSize> result;
    for (const StreamContents::Run& run : known.stream().runs(number)) {
        result.append(nb::make_tuple(run.position, run.size));
    }
    return result;
}

using InStream = py::Tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;

py::List<InStream> in_stream(const PlacedFiles& placed) {
    py::List<InStream> result;
    for (const PlacedFiles::InStream& each : placed.in_stream) {
        result.append(nb::make_tuple(each.ino, each.file_offset, each.position, each.size));
    }
    return result;
}

using Numbered = py::Tuple<std::uint64_t, std::uint64_t>;

py::List<Numbered> numbered(const std::vector<PlacedFiles::Numbered>& files) {
    py::List<Numbered> result;
    for (const PlacedFiles::Numbered& each : files) {
        result.append(nb::make_tuple(each.ino, each.number));
    }
    return result;
}

using InArchive = py::Tuple<std::uint64_t, std::uint64_t>;

py::List<InArchive> in_archive(const PlacedFiles& placed) {
    py::List<InArchive> result;
    for (const PlacedFiles::InArchive& each : placed.in_archive) {
        result.append(nb::make_tuple(each.ino, each.archived_ino));
    }
    return result;
}

py::List<nb::bytes> names(const LoadedFiles& loaded) {
    py::List<nb::bytes> result;
    for (const LoadedFile& file : loaded.files) {
        result.append(to_bytes(file.name));
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

    void copy(const Contents& contents, std::uint64_t offset, const py::Buffer& out) {
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
    sources.def("shared_runs", &shared, "content"_a, "base"_a, "least"_a,
                "Returns the runs of at least `least` bytes that a content has in common with "
                "another, in its order: offset in the content, in the other, and size.");
    nb::class_<LoadedFiles>(
        sources, "LoadedFiles",
        "Regular files of one directory, in the order of their names, whose contents are in "
        "memory, or which an archive has unchanged.\n\n"
        "They have no other names. Those in memory have no holes, and did not change while they "
        "were read.")
        .def("__len__", [](const LoadedFiles& self) { return self.files.size(); })
        .def_ro("size", &LoadedFiles::size,
                "The size of all contents in bytes, also of those that were not read.")
        .def_prop_ro(
            "size_read",
            [](const LoadedFiles& self) {
                std::uint64_t size = 0;
                for (const LoadedFile& file : self.files) {
                    size += file.content ? file.size() : 0;
                }
                return size;
            },
            "The size of the contents in memory in bytes.")
        .def("names", &names, "Returns the name of each file.")
        .def("describe", &describe,
             "Returns name, status, extended attributes, content, SHA-256 and archived_ino of each "
             "file.\n\n"
             "For a file that an archive has unchanged, there is no content, and archived_ino is "
             "its inode number there; otherwise 0. "
             "A status is (mode, uid, gid, seconds and nanoseconds of the modification time, size, "
             "device, inode number).")
        .def("xattr_rows", &xattr_rows, "first_ino"_a, "Returns rows of the table xattr.")
        .def("split_off", &LoadedFiles::split_off, "number"_a,
             "Returns the files from the one of a number on, and removes them here.")
        .def("inode_rows", &inode_rows, "first_ino"_a, "owner"_a.none(), "group"_a.none(),
             "mtime_ns"_a.none(),
             "Returns rows of the table inode, with numbers from `first_ino` on. Values that are "
             "given replace those of the files.")
        .def("dirent_rows", &dirent_rows, "parent"_a, "first_ino"_a,
             "Returns rows of the table dirent.");
    nb::class_<Contents>(sources, "Contents", "The contents of several files, or slices of them.")
        .def("__len__", [](const Contents& self) { return self.slices().size(); })
        .def_prop_ro("size", &Contents::size, "The size of all contents in bytes.");
    nb::class_<ContentCopier>(sources, "ContentCopier", "Copies contents on threads of its own.")
        .def(nb::init<>())
        .def("copy", &ContentCopier::copy, "contents"_a, "offset"_a, "out"_a,
             "Has the bytes from `offset` on copied, soon. Raises IndexError if there are fewer "
             "than `out` has.")
        .def("wait", &ContentCopier::wait, "Waits until everything is copied.");
    nb::class_<PlacedFiles>(sources, "PlacedFiles",
                            "Where the contents of some files go. Empty files are left out.")
        .def_ro("new_in_stream", &PlacedFiles::new_in_stream,
                "The bytes that must be appended to the stream.")
        .def_ro("new_in_text", &PlacedFiles::new_in_text,
                "The contents that must be added as text files.")
        .def_ro("num_duplicates", &PlacedFiles::num_duplicates,
                "The number of contents that the stream or a text file had.")
        .def_ro("num_unchanged", &PlacedFiles::num_unchanged,
                "The number of files that were not read.")
        .def_prop_ro(
            "in_stream", &in_stream,
            "Inode number, file_offset, position in the stream, and size of each extent of the "
            "files whose contents are in the stream.")
        .def_prop_ro(
            "in_text", [](const PlacedFiles& self) { return numbered(self.in_text); },
            "Inode number, and number of a text file.")
        .def_prop_ro(
            "composed", [](const PlacedFiles& self) { return numbered(self.composed); },
            "Inode number, and number of a composed content.")
        .def_prop_ro("in_archive", &in_archive,
                     "Inode number, and that of a file of the archive which has the content.")
        .def_ro("binary", &PlacedFiles::binary,
                "The inode numbers of files that are not text, without those `in_archive`.");
    nb::enum_<StoredContent::Place>(sources, "Place", "Where a content is stored.")
        .value("STREAM", StoredContent::Place::stream)
        .value("TEXT", StoredContent::Place::text)
        .value("ARCHIVE", StoredContent::Place::archive)
        .value("COMPOSED", StoredContent::Place::composed);
    nb::class_<PathTable>(sources, "PathTable",
                          "Numbers of millions of paths, in some 20 bytes of memory for each.")
        .def(nb::init<const std::string&>(), "directory"_a, "`directory` is for a temporary file.")
        .def("set", &set_number, "path"_a, "number"_a, "Stores the number of a path.")
        .def("get", &get_number, "path"_a, "Returns the number of a path, 0 if it has none.")
        .def_prop_ro(
            "memory_size", [](const PathTable& self) { return self.numbers.memory_size(); },
            "The size of what is in memory, in bytes.");
    nb::class_<KnownContents>(sources, "KnownContents",
                              "The contents that are stored: in the stream, as the text file of a "
                              "number, as the archive's file of an inode number, or as the "
                              "composed content of a number.\n\n"
                              "Contents in the stream have numbers, too.")
        .def(nb::init<const std::string&>(), "directory"_a, "`directory` is for temporary files.")
        .def("find", &find, "sha256"_a,
             "Returns the place of a content, and its number; None if it is not known.")
        .def("add", &add, "sha256"_a, "place"_a, "where"_a)
        .def("unknown", &unknown, "files"_a,
             "Returns name and size of each file that was read, is not empty, and whose content is "
             "not known.")
        .def_prop_ro("memory_size", &KnownContents::memory_size,
                     "The size of what is in memory for each content, in bytes.")
        .def("unknown_contents", &unknown_contents, "files"_a,
             "Returns name, content and SHA-256 of each of the files that `unknown` names.")
        .def("place", &place, "files"_a, "first_ino"_a, "text_file"_a.none(), "num_threads"_a,
             "Places the contents of files, and adds those that are new.\n\n"
             "The next text file gets the number `text_file`. If that is None, all contents go to "
             "the stream.")
        .def("add_piece", &add_piece, "piece"_a, "num_threads"_a,
             "Adds the next bytes of a content that goes to the stream.\n\n"
             "Returns begin and size of the ranges that must be appended to the stream.")
        .def(
            "end_content", [](KnownContents& self) { return self.stream().end(); },
            "Ends the content that came in pieces. Returns its number.")
        .def("runs", &runs, "number"_a,
             "Returns position and size of the runs of the stream that are a content, in order.");
}

}  // namespace gompfs
