// Visits the records of a b-tree of a SQLite image in the order of their keys, and checks the tree:
// see pages.h for what is checked.
//
// The walk is iterative, with a stack of at most 20 pages, as deep as SQLite's cursors go.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index/records.h"
#include "index/tree_pages.h"

namespace gompfs {

// Calls visit(rowid, record) for each record, with its beginning at least: see below. The rowid is
// 0 in a b-tree of records.
template <typename Visit>
class TreeWalk {
  public:
    TreeWalk(Pages& pages, Root root, const Visit& visit)
        : pages_(pages), num_key_fields_(root.num_key_fields), visit_record_(visit) {
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
                visit_leaf(page);
            } else if (page.next == page.num_cells() + 1) {
                path_.pop_back();
            } else {
                visit(page);
            }
        }
    }

    bool has_rows() const { return has_rows_; }

  private:
    static constexpr std::size_t kMaxDepth = 20;  // the depth limit of SQLite's cursors
    static constexpr std::uint64_t kMaxPayload = 0x7fffffff;

    void enter(std::uint32_t number) {
        if (path_.size() == kMaxDepth) {
            fail_image("a b-tree is too deep");
        }
        const std::uint8_t* const bytes = pages_.use(number);
        const TreePage& page =
            path_.emplace_back(bytes, number == 1 ? kImageHeaderSize : 0, pages_.usable());
        if (path_.size() > 1 && page.has_rows() != has_rows_) {
            fail_image("a b-tree has pages of two kinds");
        }
    }

    void visit_leaf(TreePage& page) {
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

    // Checks a payload, including its overflow pages, and the key in it. The record that is visited
    // lacks the overflow pages of a row.
    void take_payload(TreePage& page, const std::uint8_t* cell, const std::uint8_t* payload,
                      std::uint64_t size) {
        const std::uint64_t local = local_size(size);
        const std::uint64_t needed = local + (local == size ? 0 : 4);
        if (needed > static_cast<std::uint64_t>(page.end() - payload)) {
            fail_image("a cell is longer than its page");
        }
        page.take(cell, payload + needed);
        std::span<const std::uint8_t> record(payload, local);
        if (local != size) {
            const bool is_kept = !has_rows_;
            std::vector<std::uint8_t>& whole = wholes_[current_];
            if (is_kept) {
                whole.assign(payload, payload + local);
            }
            follow_overflow(big_endian32(payload + local), size - local,
                            is_kept ? &whole : nullptr);
            record = is_kept ? std::span<const std::uint8_t>(whole) : record;
        }
        if (!has_rows_) {
            take_key(record);
        }
        visit_record_(rowid_, record);
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

    void take_key(std::span<const std::uint8_t> record) {
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
    const Visit& visit_record_;
    bool has_rows_ = false;
    std::vector<TreePage> path_;
    std::size_t leaf_depth_ = 0;
    bool has_key_ = false;
    std::int64_t rowid_ = 0;               // of the last row
    Key keys_[2];                          // the last key, and at current_ the one being read
    std::vector<std::uint8_t> wholes_[2];  // the keys' records, if these have overflow pages
    int current_ = 0;
};

}  // namespace gompfs
