// Opens the pages of a SQLite image; see tree_pages.h.
#include "index/tree_pages.h"

#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

namespace gompfs {
namespace {

constexpr char kMagic[] = "SQLite format 3";
constexpr std::uint32_t kLockByte = 0x40000000;
constexpr std::uint32_t kMinUsable = 480;

}  // namespace

Pages::Pages(std::span<const std::uint8_t> image) : image_(image) {
    if (image.size() < kImageHeaderSize || std::memcmp(image.data(), kMagic, sizeof kMagic) != 0) {
        fail_image("file is not a database");
    }
    const std::uint8_t* const header = image.data();
    const std::uint32_t stored_size = big_endian16(header + 16);
    page_size_ = stored_size == 1 ? 65536 : stored_size;
    usable_ = page_size_ - header[20];
    if (page_size_ < 512 || !std::has_single_bit(page_size_) || usable_ < kMinUsable) {
        fail_image("its pages have an impossible size");
    }
    if (header[18] != 1 || header[19] != 1) {
        fail_image("it is in WAL mode, or of an unknown format");
    }
    if (big_endian32(header + 56) != 1) {
        fail_image("its text is not UTF-8");
    }
    const std::size_t num_stored = image.size() / page_size_;
    if (num_stored == 0 || num_stored >= std::numeric_limits<std::uint32_t>::max()) {
        fail_image("it has an impossible number of pages");
    }
    num_pages_ = static_cast<std::uint32_t>(num_stored);
    // Counts as SQLite does: writers that do not know the field leave it out of date.
    const std::uint32_t counted = big_endian32(header + 28);
    if (counted != 0 && std::memcmp(header + 24, header + 92, 4) == 0) {
        if (counted > num_pages_) {
            fail_image("it is shorter than its number of pages");
        }
        num_pages_ = counted;
    }
    is_used_.resize(std::size_t{num_pages_} + 1);
    if (big_endian32(header + 52) != 0) {
        use_pointer_maps();
    }
}

// With auto_vacuum, page 2 and some pages at regular distances after it record the users of the
// other pages.
void Pages::use_pointer_maps() {
    const std::uint32_t lock_page = kLockByte / page_size_ + 1;
    const std::uint64_t distance = usable_ / 5 + 1;
    for (std::uint64_t page = 2; page <= num_pages_; page += distance) {
        const std::uint64_t map = page == lock_page ? page + 1 : page;
        if (map <= num_pages_) {
            is_used_[map] = true;
        }
    }
}

const std::uint8_t* Pages::use(std::uint32_t page) {
    if (page == 0 || page > num_pages_ || page == kLockByte / page_size_ + 1) {
        throw std::invalid_argument("there is no page " + std::to_string(page) + " for it to use");
    }
    if (is_used_[page]) {
        throw std::invalid_argument("page " + std::to_string(page) + " is used twice");
    }
    is_used_[page] = true;
    return image_.data() + std::size_t{page - 1} * page_size_;
}

}  // namespace gompfs
