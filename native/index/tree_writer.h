// Writes the pages of a SQLite database whose rows are known in the order of their keys.
//
// Leaf pages are filled one after another, and the interior pages above them as their children are
// complete, so that each row is copied once: an insert through SQL takes ten times as long. The
// format is described at https://www.sqlite.org/fileformat2.html. The pages depend on the rows
// only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "common/large_vector.h"

namespace gompfs {

inline constexpr std::uint32_t kPageSize = 4096;
inline constexpr std::size_t kImageHeaderSize = 100;  // page 1 begins with the image's header

// The pages of a database. Page 1 is there from the beginning.
class ImagePages {
  public:
    // With a descriptor, all pages but the last ones are written to that file at once.
    explicit ImagePages(std::size_t expected_size, int descriptor = -1);

    // Appends a page, which the caller must fill, and returns its number. Skips the page that
    // SQLite locks. Throws std::system_error if the file cannot be written.
    std::uint32_t add();
    // The bytes of page 1 or of the two pages that were added last.
    std::uint8_t* page(std::uint32_t number) {
        return number == 1 ? first_.data()
                           : pages_.data() + std::size_t{number - first_kept_} * kPageSize;
    }
    std::uint32_t num_pages() const { return num_pages_; }
    // Returns all pages, or writes those that are left.
    LargeVector<std::uint8_t> release();
    void finish_file();

  private:
    void write_pages(std::uint32_t count);

    const int descriptor_;
    std::array<std::uint8_t, kPageSize> first_{};
    LargeVector<std::uint8_t> pages_;  // from first_kept_ on
    std::uint32_t first_kept_ = 1, num_pages_ = 0;
};

// A record of a database: its fields, in order.
class RecordWriter {
  public:
    void begin() { types_size_ = body_size_ = 0; }
    void add_null() { types_[types_size_++] = 0; }
    void add_integer(std::int64_t value);
    void add_integer(std::uint64_t value) { add_integer(static_cast<std::int64_t>(value)); }
    void add_blob(Bytes bytes) { add_bytes(bytes, 12); }
    void add_blob(std::string_view bytes);
    void add_text(std::string_view text);
    // Returns the record, which is valid until the next begin().
    Bytes finish();

  private:
    void add_bytes(Bytes bytes, std::uint64_t type);
    // Returns where the next bytes of the body are to be written, with space for them.
    std::uint8_t* room(std::size_t size);

    static constexpr std::size_t kMaxTypes = 96;  // bytes: nine for each of ten fields, and more

    std::array<std::uint8_t, kMaxTypes> types_;
    std::size_t types_size_ = 0, body_size_ = 0;
    std::vector<std::uint8_t> buffer_;  // the body follows kMaxTypes bytes
};

// A page of a b-tree that is being filled.
class NodePage {
  public:
    enum class Kind : std::uint8_t {
        interior_records = 2,
        interior_rows = 5,
        leaf_records = 10,
        leaf_rows = 13
    };

    // `first` is the position of the page's own header.
    explicit NodePage(Kind kind, std::size_t first = 0);

    std::uint32_t num_cells() const { return num_cells_; }
    bool has_room(std::size_t cell_size) const {
        return cells_begin_ - pointers_end_ >= cell_size + 2;
    }
    // Appends a cell. Needs room for it.
    void add(Bytes cell);
    Bytes last_cell() const;
    void drop_last_cell();
    // Writes the finished page. `last_child` is for interior pages.
    void write(std::uint8_t* out, std::uint32_t last_child = 0) const;
    void clear();

  private:
    bool is_interior() const {
        return kind_ == Kind::interior_records || kind_ == Kind::interior_rows;
    }

    Kind kind_;
    std::size_t first_, pointers_end_, cells_begin_;
    std::uint32_t num_cells_;
    std::array<std::uint8_t, kPageSize> bytes_;
};

// A b-tree of rows with rowids, or of records (the table is WITHOUT ROWID).
class TreeWriter {
  public:
    enum class Kind : std::uint8_t { rows, records };

    TreeWriter(ImagePages& pages, Kind kind);

    // Adds a record. Keys must ascend; rowid is 0 in a tree of records.
    void add(std::int64_t rowid, Bytes record);
    // Writes what is left. Returns the root page.
    std::uint32_t finish();

  private:
    using Cell = std::vector<std::uint8_t>;

    // The pages of a level above the leaves.
    struct Level {
        explicit Level(NodePage::Kind kind) : page(kind) {}

        NodePage page;
        Cell pending;  // a cell without room in the page: it is added to the next page
    };

    // Sets cell_, without its bytes in overflow pages.
    void make_cell(std::int64_t rowid, Bytes record);
    std::uint32_t write_overflow(Bytes rest);
    std::uint32_t write_page(const NodePage& page, std::uint32_t last_child = 0);
    void add_child(std::size_t level, std::uint32_t child, Bytes separator);
    void end_page(std::size_t level);
    void split_leaf();
    std::uint32_t finish_level(std::size_t level, std::uint32_t last_child);

    ImagePages& pages_;
    const Kind kind_;
    NodePage leaf_;
    std::array<std::uint8_t, kPageSize> cell_bytes_;
    Bytes cell_;  // the cell of the record that is added
    Cell pending_, rowid_key_;
    std::int64_t last_rowid_ = 0;
    std::vector<Level> levels_;
};

// Fills page 1: the header of the database, and the table of its tables. Records are those of
// sqlite_master.
void write_first_page(ImagePages& pages, std::span<const std::vector<std::uint8_t>> records);

}  // namespace gompfs
