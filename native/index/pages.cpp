// Implements the check of a SQLite image; see pages.h. The format is described at
// https://www.sqlite.org/fileformat2.html.
//
// Pages::use marks each page as used and throws if it already is, so no cycle and no sharing of
// pages is possible. TreeCheck visits a b-tree iteratively with a stack of at most 20 pages, as
// deep as SQLite's cursors go. Inside a page, cells are charged against the bytes that the page has
// for cells (TreePage::take), so overlapping cells cannot multiply content.
#include "index/pages.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "index/records.h"

namespace gompfs {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr char kMagic[] = "SQLite format 3";
// Bytes of the image's header; the b-tree header of page 1 follows it.
constexpr std::size_t kHeaderSize = 100;
constexpr std::uint32_t kLockByte = 0x40000000;
constexpr std::uint32_t kMinUsable = 480;
constexpr std::size_t kMaxDepth = 20;  // the depth limit of SQLite's cursors
constexpr std::uint64_t kMaxPayload = 0x7fffffff;

enum PageType : std::uint8_t {
    kInteriorRecords = 2,
    kInteriorRows = 5,
    kLeafRecords = 10,
    kLeafRows = 13
};

// The pages of an image, and which of them are used.
class Pages {
  public:
    explicit Pages(Bytes image);

    std::uint32_t usable() const { return usable_; }
    const std::uint8_t* header() const { return image_.data(); }

    // Marks a page as used. Throws if there is no such page or if it is already used.
    const std::uint8_t* use(std::uint32_t page);

  private:
    void use_pointer_maps();

    Bytes image_;
    std::uint32_t page_size_ = 0, usable_ = 0, num_pages_ = 0;
    std::vector<bool> is_used_;
};

Pages::Pages(Bytes image) : image_(image) {
    if (image.size() < kHeaderSize || std::memcmp(image.data(), kMagic, sizeof kMagic) != 0) {
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

void check_freelist(Pages& pages) {
    const std::uint32_t count = big_endian32(pages.header() + 36);
    std::uint64_t num_found = 0;
    for (std::uint32_t trunk = big_endian32(pages.header() + 32); trunk != 0;) {
        const std::uint8_t* const bytes = pages.use(trunk);
        const std::uint32_t num_leaves = big_endian32(bytes + 4);
        if (num_leaves > pages.usable() / 4 - 2) {
            fail_image("a page of its freelist lists too many pages");
        }
        for (std::uint32_t leaf = 0; leaf < num_leaves; ++leaf) {
            pages.use(big_endian32(bytes + 8 + std::size_t{4} * leaf));
        }
        num_found += 1 + std::uint64_t{num_leaves};
        trunk = big_endian32(bytes);
    }
    if (num_found != count) {
        fail_image("its freelist does not have the length that the header states");
    }
}

// A page of a b-tree whose cells are being visited.
class TreePage {
  public:
    TreePage(const std::uint8_t* page, std::size_t first, std::uint32_t usable)
        : page_(page), end_(page + usable), header_(page + first) {
        type_ = header_[0];
        if (type_ != kInteriorRecords && type_ != kInteriorRows && type_ != kLeafRecords &&
            type_ != kLeafRows) {
            fail_image("a page of a b-tree has an unknown type");
        }
        num_cells_ = big_endian16(header_ + 3);
        pointers_ = header_ + (is_leaf() ? 8 : 12);
        const auto space = static_cast<std::size_t>(end_ - pointers_);
        if (num_cells_ > space / 6) {  // a cell has at least four bytes, and a pointer of two
            fail_image("a page has too many cells");
        }
        left_ = space - std::size_t{2} * num_cells_;
    }

    bool is_leaf() const { return type_ == kLeafRecords || type_ == kLeafRows; }
    bool has_rows() const { return type_ == kInteriorRows || type_ == kLeafRows; }
    std::uint32_t num_cells() const { return num_cells_; }
    const std::uint8_t* end() const { return end_; }
    std::uint32_t last_child() const { return big_endian32(header_ + 8); }

    // Returns a cell by number. Throws if the cell overlaps the pointers or the page's end.
    const std::uint8_t* cell(std::uint32_t number) const {
        const std::uint8_t* const bytes = page_ + big_endian16(pointers_ + std::size_t{2} * number);
        if (bytes < pointers_ + std::size_t{2} * num_cells_ || bytes + 4 > end_) {
            fail_image("a cell lies outside its page");
        }
        return bytes;
    }

    // Subtracts the bytes of a cell from the bytes that the page has for cells, so that cells
    // cannot share bytes.
    void take(const std::uint8_t* cell, const std::uint8_t* cell_end) {
        const auto size = static_cast<std::size_t>(std::max<std::ptrdiff_t>(cell_end - cell, 4));
        if (size > left_) {
            fail_image("the cells of a page overlap");
        }
        left_ -= size;
    }

    std::uint32_t next = 0;  // number of the next cell to visit

  private:
    const std::uint8_t* page_;
    const std::uint8_t* end_;
    const std::uint8_t* header_;
    const std::uint8_t* pointers_;
    std::uint8_t type_;
    std::uint32_t num_cells_;
    std::size_t left_;
};

// Visits one b-tree in the order of its keys.
class TreeCheck {
  public:
    TreeCheck(Pages& pages, Root root) : pages_(pages), num_key_fields_(root.num_key_fields) {
        path_.reserve(kMaxDepth);
        enter(root.page);
        has_rows_ = path_.back().has_rows();
        if (!has_rows_ && (num_key_fields_ == 0 || num_key_fields_ > Key::kMaxFields)) {
            fail_image("a table has no key");
        }
    }

    void run() {
        while (!path_.empty()) {
            TreePage& page = path_.back();
            if (page.is_leaf()) {
                check_leaf(page);
            } else if (page.next == page.num_cells() + 1) {
                path_.pop_back();
            } else {
                visit(page);
            }
        }
    }

  private:
    void enter(std::uint32_t number) {
        if (path_.size() == kMaxDepth) {
            fail_image("a b-tree is too deep");
        }
        const std::uint8_t* const bytes = pages_.use(number);
        const TreePage& page =
            path_.emplace_back(bytes, number == 1 ? kHeaderSize : 0, pages_.usable());
        if (path_.size() > 1 && page.has_rows() != has_rows_) {
            fail_image("a b-tree has pages of two kinds");
        }
    }

    void check_leaf(TreePage& page) {
        if (leaf_depth_ == 0) {
            leaf_depth_ = path_.size();
        } else if (leaf_depth_ != path_.size()) {
            fail_image("the leaves of a b-tree differ in depth");
        }
        for (std::uint32_t number = 0; number < page.num_cells(); ++number) {
            const std::uint8_t* const cell = page.cell(number);
            const std::uint8_t* next = cell;
            if (has_rows_) {
                const std::uint64_t size = payload_size(next, page.end());
                take_rowid(next, page.end(), false);
                take_payload(page, cell, next, size);
            } else {
                const std::uint64_t size = payload_size(next, page.end());
                take_payload(page, cell, next, size);
            }
        }
        path_.pop_back();
    }

    // Enters the next child of an interior page, after checking the cell before it.
    void visit(TreePage& page) {
        if (page.next != 0) {
            const std::uint8_t* const cell = page.cell(page.next - 1);
            const std::uint8_t* next = cell + 4;
            if (has_rows_) {
                take_rowid(next, page.end(), true);
                page.take(cell, next);
            } else {
                const std::uint64_t size = payload_size(next, page.end());
                take_payload(page, cell, next, size);
            }
        }
        const std::uint32_t number = page.next++;
        enter(number == page.num_cells() ? page.last_child() : big_endian32(page.cell(number)));
    }

    static std::uint64_t payload_size(const std::uint8_t*& next, const std::uint8_t* end) {
        const std::uint8_t* const start = next;
        const std::uint64_t size = read_varint(next, end);
        if (size > kMaxPayload || next - start > 5) {
            fail_image("a record has an impossible size");
        }
        return size;
    }

    // Checks the order of rowids: those of leaves ascend; one of an interior page is not below
    // those before it.
    void take_rowid(const std::uint8_t*& next, const std::uint8_t* end, bool is_interior) {
        const auto rowid = static_cast<std::int64_t>(read_varint(next, end));
        if (has_key_ && (is_interior ? rowid < rowid_ : rowid <= rowid_)) {
            fail_image("the rows of a table are not in order");
        }
        rowid_ = rowid;
        has_key_ = true;
    }

    // Checks a payload, including its overflow pages, and the key in it.
    void take_payload(TreePage& page, const std::uint8_t* cell, const std::uint8_t* payload,
                      std::uint64_t size) {
        const std::uint64_t local = local_size(size);
        const std::uint64_t needed = local + (local == size ? 0 : 4);
        if (needed > static_cast<std::uint64_t>(page.end() - payload)) {
            fail_image("a cell is longer than its page");
        }
        page.take(cell, payload + needed);
        Bytes record(payload, local);
        if (local != size) {
            const bool is_kept = !has_rows_;
            std::vector<std::uint8_t>& whole = wholes_[current_];
            if (is_kept) {
                whole.assign(payload, payload + local);
            }
            follow_overflow(big_endian32(payload + local), size - local,
                            is_kept ? &whole : nullptr);
            record = is_kept ? Bytes(whole) : record;
        }
        if (!has_rows_) {
            take_key(record);
        }
    }

    void follow_overflow(std::uint32_t page, std::uint64_t left, std::vector<std::uint8_t>* whole) {
        while (left != 0) {
            const std::uint8_t* const bytes = pages_.use(page);
            const std::uint64_t here = std::min<std::uint64_t>(left, pages_.usable() - 4);
            if (whole != nullptr) {
                whole->insert(whole->end(), bytes + 4, bytes + 4 + here);
            }
            left -= here;
            page = big_endian32(bytes);
        }
        if (page != 0) {
            fail_image("an overflow chain is longer than its record");
        }
    }

    void take_key(Bytes record) {
        keys_[current_].read(record, num_key_fields_);
        if (has_key_ && !keys_[1 - current_].is_before(keys_[current_])) {
            fail_image("the keys of a table are not in order, or a key occurs twice");
        }
        current_ = 1 - current_;
        has_key_ = true;
    }

    // The number of bytes of a payload that are stored in its cell.
    std::uint64_t local_size(std::uint64_t size) const {
        const std::uint64_t usable = pages_.usable();
        const std::uint64_t most = has_rows_ ? usable - 35 : (usable - 12) * 64 / 255 - 23;
        if (size <= most) {
            return size;
        }
        const std::uint64_t least = (usable - 12) * 32 / 255 - 23;
        const std::uint64_t local = least + (size - least) % (usable - 4);
        return local <= most ? local : least;
    }

    Pages& pages_;
    const std::uint32_t num_key_fields_;
    bool has_rows_ = false;
    std::vector<TreePage> path_;
    std::size_t leaf_depth_ = 0;
    bool has_key_ = false;
    std::int64_t rowid_ = 0;               // of the last row
    Key keys_[2];                          // the last key, and at current_ the one being read
    std::vector<std::uint8_t> wholes_[2];  // the keys' records, if these have overflow pages
    int current_ = 0;
};

}  // namespace

void check_pages(Bytes image, std::span<const Root> roots) {
    Pages pages(image);
    check_freelist(pages);
    TreeCheck(pages, {1, 0}).run();
    for (const Root root : roots) {
        TreeCheck(pages, root).run();
    }
}

}  // namespace gompfs
