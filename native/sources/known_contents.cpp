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

PlacedFiles place_files(const std::vector<LoadedFile>& files, NextPlaces next,
                        KnownContents& known) {
    PlacedFiles placed;
    std::uint64_t ino = next.ino;
    for (const LoadedFile& file : files) {
        const FileContent& content = *file.content;
        const std::uint64_t size = content.bytes.size();
        const bool is_text = next.text_file && content.is_text;
        if (size > 0) {
            std::optional<StoredContent> stored = known.find(size, content.sha256);
            if (stored) {
                ++placed.num_duplicates;
            } else if (is_text) {
                stored = {true, (*next.text_file)++};
                placed.new_in_text.append(file.content);
                known.add(size, content.sha256, *stored);
            } else {
                stored = {false, next.address};
                next.address += size;
                placed.new_in_stream.append(file.content);
                known.add(size, content.sha256, *stored);
            }
            if (stored->is_text) {
                placed.in_text.push_back({ino, stored->where});
            } else {
                placed.in_stream.push_back({ino, stored->where, size});
            }
            if (!content.is_text) {
                placed.binary.push_back(ino);
            }
        }
        ++ino;
    }
    return placed;
}

}  // namespace gompfs
