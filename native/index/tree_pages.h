// The pages of a SQLite image, and the cells of those that are in b-trees.
//
// Pages::use marks each page as used and throws if it already is, so no cycle and no sharing of
// pages is possible. Inside a page, cells are charged against the bytes that the page has for cells
// (TreePage::take), so overlapping cells cannot multiply content.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index/records.h"

namespace gompfs {

// Bytes of the image's header; the b-tree header of page 1 follows it.
constexpr std::size_t kImageHeaderSize = 100;

// The root page of a b-tree. A b-tree of records (a table WITHOUT ROWID, or an index) is ordered by
// the first num_key_fields fields; a b-tree of rows is ordered by rowid.
struct Root {
    std::uint32_t page;
    std::uint32_t num_key_fields;
};

// The pages of an image, and which of them are used.
class Pages {
  public:
    explicit Pages(std::span<const std::uint8_t> image);

    std::uint32_t usable() const { return usable_; }
    const std::uint8_t* header() const { return image_.data(); }

    // Marks a page as used. Throws if there is no such page or if it is already used.
    const std::uint8_t* use(std::uint32_t page);

  private:
    void use_pointer_maps();

    std::span<const std::uint8_t> image_;
    std::uint32_t page_size_ = 0, usable_ = 0, num_pages_ = 0;
    std::vector<bool> is_used_;
};

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
    enum Type : std::uint8_t {
        kInteriorRecords = 2,
        kInteriorRows = 5,
        kLeafRecords = 10,
        kLeafRows = 13
    };

    const std::uint8_t* page_;
    const std::uint8_t* end_;
    const std::uint8_t* header_;
    const std::uint8_t* pointers_;
    std::uint8_t type_;
    std::uint32_t num_cells_;
    std::size_t left_;
};

}  // namespace gompfs
