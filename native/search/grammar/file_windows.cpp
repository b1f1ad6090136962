// Puts the windows of parts together; see file_windows.h.
#include "search/grammar/file_windows.h"

namespace gompfs::search {

bool FileWindows::add(std::shared_ptr<const PartWindows> part, std::size_t piece,
                      std::uint64_t size) {
    const std::uint64_t part_begin = part->pieces[piece].begin;
    const bool continues = goes_on_;
    const std::uint64_t num_before = num_line_feeds_;
    if (continues) {
        if (!part->head) {
            return false;
        }
        pending_ += *part->head;
        if (!pending_.ends_with('\n') && size != part->head->size()) {
            return false;
        }
        add_pending();
    }
    for (std::size_t index = part->pieces[piece].first_window; index != part->windows_end(piece);
         ++index) {
        const PartWindows::Window& window = part->windows[index];
        std::string_view text = part->text_of(index);
        std::uint64_t position = window.position, num_line_feeds = window.num_line_feeds;
        if (continues && position == 0) {  // without the rest of a line
            text.remove_prefix(part->head->size());
            position += part->head->size();
            ++num_line_feeds;
        }
        if (!text.empty()) {
            windows_.push_back({text, size_ + position - part_begin, num_before + num_line_feeds});
        }
    }
    goes_on_ = !part->ends_with_file && piece + 1 == part->pieces.size();
    if (goes_on_) {
        pending_ = part->tail;
        pending_offset_ = size_ + part->tail_position - part_begin;
        num_line_feeds_ = num_before + part->num_line_feeds_before_tail;
    }
    size_ += size;
    parts_.push_back(std::move(part));
    return true;
}

// Adds the line that was in several parts.
void FileWindows::add_pending() {
    if (!pending_.empty()) {
        lines_.push_back(std::move(pending_));
        windows_.push_back({lines_.back(), pending_offset_, num_line_feeds_});
        pending_.clear();
    }
}

}  // namespace gompfs::search
