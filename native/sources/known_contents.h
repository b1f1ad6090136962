// The contents of files that an archive has already, so that equal files are stored once.
//
// A content is stored in the stream, as one of StreamContents, or as one of the text files; both
// have numbers. An archive that is added to has the contents of its files, which have inode
// numbers. A composed content is in part in that archive, and in part in the stream; the caller
// numbers these. Two contents are equal if their hashes are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/contents.h"
#include "common/sha256.h"
#include "sources/digest_table.h"
#include "sources/local_files.h"
#include "sources/stream_contents.h"

namespace gompfs {

struct StoredContent {
    enum class Place : std::uint8_t { stream, text, archive, composed };

    Place place;
    std::uint64_t where;  // a number: of StreamContents, a text file, an inode, a composed content
};

class KnownContents {
  public:
    // `directory` is for temporary files.
    explicit KnownContents(const std::string& directory)
        : contents_(directory), stream_(directory) {}

    std::optional<StoredContent> find(const Sha256::Digest& sha256) const;
    void add(const Sha256::Digest& sha256, StoredContent stored);

    // The size of what is in memory for the contents, without the chunks of the stream, in bytes.
    std::uint64_t memory_size() const { return contents_.memory_size(); }

    StreamContents& stream() { return stream_; }
    const StreamContents& stream() const { return stream_; }

  private:
    DigestTable contents_;  // places, and `where` above kPlaceBits bits
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
    struct Numbered {
        std::uint64_t ino, number;
    };
    struct InArchive {
        std::uint64_t ino, archived_ino;
    };

    Contents new_in_stream;  // without what the stream has
    Contents new_in_text;
    std::vector<InStream> in_stream;
    std::vector<Numbered> in_text;
    std::vector<InArchive> in_archive;
    std::vector<Numbered> composed;
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
