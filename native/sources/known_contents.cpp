// Finds equal contents; see known_contents.h.
#include "sources/known_contents.h"

#include <memory>
#include <utility>
#include <vector>

namespace gompfs {

namespace {

constexpr int kPlaceBits = 2;

}  // namespace

std::optional<StoredContent> KnownContents::find(const Sha256::Digest& sha256) const {
    const std::optional<std::uint64_t> found = contents_.find(sha256);
    if (!found) {
        return std::nullopt;
    }
    const auto place = static_cast<StoredContent::Place>(*found & ((1 << kPlaceBits) - 1));
    return StoredContent{place, *found >> kPlaceBits};
}

void KnownContents::add(const Sha256::Digest& sha256, StoredContent stored) {
    contents_.set(sha256, stored.where << kPlaceBits | static_cast<std::uint64_t>(stored.place));
}

std::vector<const LoadedFile*> unknown_files(const std::vector<LoadedFile>& files,
                                             const KnownContents& known) {
    std::vector<const LoadedFile*> unknown;
    for (const LoadedFile& file : files) {
        if (file.content && file.size() > 0 && !known.find(file.content->sha256)) {
            unknown.push_back(&file);
        }
    }
    return unknown;
}

namespace {

// Adds contents to the stream. Returns what is new in it.
Contents add_to_stream(const std::vector<std::shared_ptr<FileContent>>& contents,
                       StreamContents& stream, unsigned num_threads) {
    std::vector<StreamContents::Bytes> bytes;
    bytes.reserve(contents.size());
    for (const auto& content : contents) {
        bytes.emplace_back(content->bytes);
    }
    Contents added;
    const std::vector<StreamContents::Ranges> ranges = stream.add(bytes, num_threads);
    for (std::size_t index = 0; index < contents.size(); ++index) {
        for (const StreamContents::Range& range : ranges[index]) {
            added.append({contents[index], range.begin, range.size});
        }
    }
    return added;
}

}  // namespace

PlacedFiles place_files(const std::vector<LoadedFile>& files, NextPlaces next, KnownContents& known,
                        unsigned num_threads) {
    using Place = StoredContent::Place;
    PlacedFiles placed;
    std::vector<std::shared_ptr<FileContent>> for_stream;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> in_stream;  // inode and content
    std::uint64_t ino = next.ino - 1;
    for (const LoadedFile& file : files) {
        ++ino;
        if (!file.content) {
            placed.in_archive.push_back({ino, file.archived_ino});
            ++placed.num_unchanged;
            continue;
        }
        const FileContent& content = *file.content;
        if (content.bytes.empty()) {
            continue;
        }
        std::optional<StoredContent> stored = known.find(content.sha256);
        if (!stored) {
            if (next.text_file && content.is_text) {
                stored = {Place::text, (*next.text_file)++};
                placed.new_in_text.append(file.content);
            } else {
                stored = {Place::stream, known.stream().num_contents() + for_stream.size()};
                for_stream.push_back(file.content);
            }
            known.add(content.sha256, *stored);
        } else if (stored->place == Place::stream || stored->place == Place::text) {
            ++placed.num_duplicates;
        }
        if (stored->place == Place::archive) {
            placed.in_archive.push_back({ino, stored->where});
            continue;
        }
        if (stored->place == Place::text) {
            placed.in_text.push_back({ino, stored->where});
        } else if (stored->place == Place::composed) {
            placed.composed.push_back({ino, stored->where});
        } else {
            in_stream.emplace_back(ino, stored->where);
        }
        if (!content.is_text) {
            placed.binary.push_back(ino);
        }
    }
    placed.new_in_stream = add_to_stream(for_stream, known.stream(), num_threads);
    for (const auto& [number, content] : in_stream) {
        std::uint64_t file_offset = 0;
        for (const StreamContents::Run& run : known.stream().runs(content)) {
            placed.in_stream.push_back({number, file_offset, run.position, run.size});
            file_offset += run.size;
        }
    }
    return placed;
}

}  // namespace gompfs
