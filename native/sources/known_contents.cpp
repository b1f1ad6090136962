// Finds equal contents; see known_contents.h.
#include "sources/known_contents.h"

namespace gompfs {

std::optional<StoredContent> KnownContents::find(std::uint64_t size, const Sha256& sha256) const {
    const auto found = contents_.find({size, sha256});
    return found == contents_.end() ? std::nullopt : std::optional(found->second);
}

void KnownContents::add(std::uint64_t size, const Sha256& sha256, StoredContent stored) {
    contents_.insert_or_assign({size, sha256}, stored);
    sizes_.insert(size);
}

std::vector<const LoadedFile*> unknown_files(const std::vector<LoadedFile>& files,
                                             const KnownContents& known) {
    std::vector<const LoadedFile*> unknown;
    for (const LoadedFile& file : files) {
        if (file.content && file.size() > 0 && !known.find(file.size(), file.content->sha256)) {
            unknown.push_back(&file);
        }
    }
    return unknown;
}

PlacedFiles place_files(const std::vector<LoadedFile>& files, NextPlaces next,
                        KnownContents& known) {
    using Place = StoredContent::Place;
    PlacedFiles placed;
    std::uint64_t ino = next.ino - 1;
    for (const LoadedFile& file : files) {
        ++ino;
        if (!file.content) {
            placed.in_archive.push_back({ino, file.archived_ino});
            ++placed.num_unchanged;
            continue;
        }
        const FileContent& content = *file.content;
        const std::uint64_t size = content.bytes.size();
        if (size == 0) {
            continue;
        }
        std::optional<StoredContent> stored = known.find(size, content.sha256);
        if (!stored) {
            if (next.text_file && content.is_text) {
                stored = {Place::text, (*next.text_file)++};
                placed.new_in_text.append(file.content);
            } else {
                stored = {Place::stream, next.address};
                next.address += size;
                placed.new_in_stream.append(file.content);
            }
            known.add(size, content.sha256, *stored);
        } else if (stored->place != Place::archive) {
            ++placed.num_duplicates;
        }
        if (stored->place == Place::archive) {
            placed.in_archive.push_back({ino, stored->where});
            continue;
        }
        if (stored->place == Place::text) {
            placed.in_text.push_back({ino, stored->where});
        } else {
            placed.in_stream.push_back({ino, stored->where, size});
        }
        if (!content.is_text) {
            placed.binary.push_back(ino);
        }
    }
    return placed;
}

}  // namespace gompfs
