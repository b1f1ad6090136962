// The contents of files that an archive has already, so that equal files are stored once.
//
// A content is stored in the stream, as one of StreamContents, or as one of the text files; both
// have numbers. An archive that is added to has the contents of its files, which have inode
// numbers. Two contents are equal if their sizes and hashes are.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/contents.h"
#include "sources/local_files.h"
#include "sources/stream_contents.h"

namespace gompfs {

struct StoredContent {
    enum class Place : std::uint8_t { stream, text, archive };

    Place place;
    std::uint64_t where;  // a number: of StreamContents, of a text file, or of an inode
};

class KnownContents {
  public:
    using Sha256 = std::array<std::uint8_t, 32>;

    std::optional<StoredContent> find(std::uint64_t size, const Sha256& sha256) const;
    void add(std::uint64_t size, const Sha256& sha256, StoredContent stored);
    // Whether a content of this size was added.
    bool has_size(std::uint64_t size) const { return sizes_.contains(size); }

    StreamContents& stream() { return stream_; }
    const StreamContents& stream() const { return stream_; }

  private:
    struct Key {
        std::uint64_t size;
        Sha256 sha256;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const {
            std::size_t hash = 0;
            std::memcpy(&hash, key.sha256.data(), sizeof hash);
            return hash;
        }
    };

    std::unordered_map<Key, StoredContent, Hash> contents_;
    std::unordered_set<std::uint64_t> sizes_;
    StreamContents stream_;
};

// A file that was read whole, or that the archive has unchanged. It has one name. If it was read,
// it has no holes.
struct LoadedFile {
    std::string name;
    struct stat status{};
    Xattrs xattrs;
    std::shared_ptr<FileContent> content;  // null if archived_ino is not 0
    std::uint64_t archived_ino = 0;

    std::uint64_t size() const { return static_cast<std::uint64_t>(status.st_size); }
};

// Where the contents of some files go: those that are new, and for each file that is not empty
// where its content is.
struct PlacedFiles {
    // An extent in the stream.
    struct InStream {
        std::uint64_t ino, file_offset, position, size;
    };
    struct InText {
        std::uint64_t ino, number;
    };
    struct InArchive {
        std::uint64_t ino, archived_ino;
    };

    Contents new_in_stream;  // without what the stream has
    Contents new_in_text;
    std::vector<InStream> in_stream;
    std::vector<InText> in_text;
    std::vector<InArchive> in_archive;
    std::vector<std::uint64_t> binary;  // inode numbers of other files that are not text
    std::uint64_t num_duplicates = 0;   // in the stream or in text
    std::uint64_t num_unchanged = 0;    // in the archive
};

struct NextPlaces {
    std::uint64_t ino;
    std::optional<std::uint64_t> text_file;  // none: all goes to the stream
};

// The files that were read, are not empty, and whose contents are not known.
std::vector<const LoadedFile*> unknown_files(const std::vector<LoadedFile>& files,
                                             const KnownContents& known);

// Adds the new contents to `known`, on up to num_threads threads.
PlacedFiles place_files(const std::vector<LoadedFile>& files, NextPlaces next, KnownContents& known,
                        unsigned num_threads);

}  // namespace gompfs
