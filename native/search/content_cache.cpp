// Remembers what was found in content that files share; see content_cache.h.
#include "search/content_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gompfs::search {
namespace {

constexpr std::uint64_t kSmallestFile = 16 << 10;  // to search a smaller one takes microseconds
constexpr std::size_t kMaxExtents = 1024;
constexpr std::size_t kMaxRecord = 64 << 10, kMaxRecords = 8 << 20;  // bytes

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ (hash >> 29);
}

bool is_same(const FileExtent& left, const FileExtent& right) {
    return left.file_offset == right.file_offset && left.stream_offset == right.stream_offset &&
           left.size == right.size;
}

}  // namespace

FoundLines ContentRecord::Event::lines() const {
    FoundLines found{bytes, line_number, file_offset, matches};
    if (is_replaced) {
        found.printed = printed;
        found.replacements = replacements;
    }
    found.num_matches = num_matches;
    return found;
}

void ContentRecord::add(Kind kind, const FoundLines* lines) {
    if (is_too_large_) {
        return;
    }
    num_bytes_ += sizeof(Event);
    if (lines != nullptr) {
        num_bytes_ += lines->bytes.size() + lines->printed.size() + lines->matches.size_bytes() +
                      lines->replacements.size_bytes();
    }
    if (num_bytes_ > kMaxRecord) {
        is_too_large_ = true;
        events_ = {};
        return;
    }
    Event event;
    event.kind = kind;
    if (lines != nullptr) {
        event.bytes = lines->bytes;
        event.is_replaced = lines->printed.data() != lines->bytes.data();
        event.printed = event.is_replaced ? lines->printed : std::string_view();
        event.matches.assign(lines->matches.begin(), lines->matches.end());
        event.replacements.assign(lines->replacements.begin(), lines->replacements.end());
        event.line_number = lines->line_number;
        event.file_offset = lines->file_offset;
        event.num_matches = lines->num_matches;
    }
    events_.push_back(std::move(event));
}

void ContentRecord::finish(const FileCounts& counts, bool has_end) {
    counts_ = counts;
    has_end_ = has_end;
    is_finished_ = true;
}

ContentCache::Key::Key(const LayoutView& view, bool is_root_of_search)
    : hash(mixed(view.size, is_root_of_search)), layout(view.copy()), is_root(is_root_of_search) {
    for (const FileExtent& extent : view.extents) {
        hash = mixed(mixed(mixed(hash, extent.file_offset), extent.stream_offset), extent.size);
    }
}

bool ContentCache::Key::operator==(const Key& other) const {
    return hash == other.hash && is_root == other.is_root && layout.size == other.layout.size &&
           std::equal(layout.extents.begin(), layout.extents.end(), other.layout.extents.begin(),
                      other.layout.extents.end(), is_same);
}

bool ContentCache::is_for(const LayoutView& layout) {
    return layout.size >= kSmallestFile && layout.extents.size() <= kMaxExtents;
}

std::size_t ContentCache::Item::num_bytes() const {
    return sizeof(Item) + key.layout.extents.size() * sizeof(FileExtent) + record->num_bytes();
}

std::shared_ptr<const ContentRecord> ContentCache::find(const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = by_hash_.find(key.hash);
    return found != by_hash_.end() && found->second->key == key ? found->second->record : nullptr;
}

void ContentCache::add(const Key& key, std::shared_ptr<const ContentRecord> record) {
    if (!record->is_complete()) {
        return;
    }
    const std::lock_guard lock(mutex_);
    if (by_hash_.contains(key.hash)) {
        return;
    }
    items_.push_back({key, std::move(record)});
    by_hash_[key.hash] = std::prev(items_.end());
    num_bytes_ += items_.back().num_bytes();
    while (num_bytes_ > kMaxRecords) {
        num_bytes_ -= items_.front().num_bytes();
        by_hash_.erase(items_.front().key.hash);
        items_.pop_front();
    }
}

}  // namespace gompfs::search
