#include "reading/listing.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

namespace gompfs {

namespace {

constexpr std::size_t kNumDots = 2;
constexpr unsigned kTypeShift = 12;  // from the type in a mode to that of a directory entry

}  // namespace

Listing::Listing(std::uint64_t node, std::uint32_t cache_seconds) : cache_seconds_(cache_seconds) {
    // Nobody trusts the numbers of these: the kernel knows both directories.
    for (const std::string_view name : {".", ".."}) {
        append(name, fuse_entry_out{}, node, S_IFDIR >> kTypeShift);
    }
}

void Listing::add(std::string_view name, const fuse_attr& attributes) {
    fuse_entry_out entry{};
    if (cache_seconds_ != 0) {
        entry.nodeid = attributes.ino;
        entry.entry_valid = entry.attr_valid = cache_seconds_;
        entry.attr = attributes;
    }
    is_sorted_ = is_sorted_ && (size() == kNumDots || name_at(size() - 1) < name);
    append(name, entry, attributes.ino, attributes.mode >> kTypeShift & 15);
}

void Listing::append(std::string_view name, const fuse_entry_out& entry, std::uint64_t ino,
                     std::uint32_t type) {
    fuse_direntplus packed{};
    packed.entry_out = entry;
    packed.dirent.ino = ino;
    packed.dirent.off = size() + 1;  // where the one behind it is
    packed.dirent.namelen = static_cast<std::uint32_t>(name.size());
    packed.dirent.type = type;
    const std::size_t start = bytes_.size();
    starts_.push_back(start);
    bytes_.resize(start + FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET_DIRENTPLUS + name.size()));
    std::memcpy(bytes_.data() + start, &packed, FUSE_NAME_OFFSET_DIRENTPLUS);
    std::memcpy(bytes_.data() + start + FUSE_NAME_OFFSET_DIRENTPLUS, name.data(), name.size());
}

std::span<const std::uint8_t> Listing::entries(std::uint64_t position, std::size_t room) const {
    if (position >= size()) {
        return {};
    }
    const std::size_t start = starts_[position];
    if (bytes_.size() - start <= room) {
        return {bytes_.data() + start, bytes_.size() - start};
    }
    // The first that would end behind the room is the one whose start does not fit.
    const auto end = std::upper_bound(starts_.begin() + static_cast<std::ptrdiff_t>(position),
                                      starts_.end(), start + room) - 1;
    return {bytes_.data() + start, *end - start};
}

const fuse_entry_out* Listing::find(std::string_view name) const {
    std::size_t low = kNumDots, high = size();
    while (is_sorted_ && low < high) {
        const std::size_t middle = low + (high - low) / 2;
        const int order = name_at(middle).compare(name);
        if (order == 0) {
            return &at(middle).entry_out;
        }
        (order < 0 ? low : high) = order < 0 ? middle + 1 : middle;
    }
    return nullptr;
}

// Entries begin at multiples of 8, as the vector's memory does.
const fuse_direntplus& Listing::at(std::size_t index) const {
    return *reinterpret_cast<const fuse_direntplus*>(bytes_.data() + starts_[index]);
}

std::string_view Listing::name_at(std::size_t index) const {
    const fuse_direntplus& entry = at(index);
    return {entry.dirent.name, entry.dirent.namelen};
}

std::shared_ptr<const Listing> ListingTable::find(std::uint64_t node) const {
    const std::shared_lock lock(mutex_);
    const auto found = listings_.find(node);
    return found == listings_.end() ? nullptr : found->second;
}

void ListingTable::insert(std::uint64_t node, std::shared_ptr<const Listing> listing) {
    const std::unique_lock lock(mutex_);
    const std::size_t size = listing->size();
    if (!listings_.try_emplace(node, std::move(listing)).second) {
        return;  // another thread was faster; both are the same
    }
    nodes_.push_back(node);
    num_entries_ += size;
    while (num_entries_ > max_entries_ && nodes_.size() > 1) {
        const auto oldest = listings_.find(nodes_.front());
        num_entries_ -= oldest->second->size();
        listings_.erase(oldest);
        nodes_.pop_front();
    }
}

std::size_t ListingTable::num_entries() const {
    const std::shared_lock lock(mutex_);
    return num_entries_;
}

}  // namespace gompfs
