// Writes pages of b-trees; see tree_writer.h.
#include "index/tree_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "common/write_fully.h"

namespace gompfs {
namespace {

constexpr std::uint64_t kLockByte = 0x40000000;  // SQLite does not use the page that contains it
constexpr std::uint32_t kMaxPages = 0xfffffffd;  // SQLite's limit, less one
constexpr std::size_t kWrittenAtOnce = std::size_t{1} << 20;
constexpr std::size_t kMaxLocalOfRow = kPageSize - 35;
constexpr std::size_t kMaxLocalOfRecord = (kPageSize - 12) * 64 / 255 - 23;
constexpr std::size_t kMinLocal = (kPageSize - 12) * 32 / 255 - 23;
constexpr std::size_t kOverflowBytes = kPageSize - 4;
constexpr std::size_t kMinCell = 4;

void put16(std::uint8_t* out, std::size_t value) {
    out[0] = static_cast<std::uint8_t>(value >> 8);
    out[1] = static_cast<std::uint8_t>(value);
}

void put32(std::uint8_t* out, std::uint32_t value) {
    put16(out, value >> 16);
    put16(out + 2, value & 0xffff);
}

// Writes a variable-length integer of SQLite: seven bits per byte, highest first; a ninth byte has
// eight. Returns its size.
std::size_t put_varint(std::uint8_t* out, std::uint64_t value) {
    if (value < 0x80) {
        out[0] = static_cast<std::uint8_t>(value);
        return 1;
    }
    std::uint8_t reversed[9];
    std::size_t size = 0;
    if (value >> 56 != 0) {
        reversed[size++] = static_cast<std::uint8_t>(value);
        for (value >>= 8; size < 9; value >>= 7) {
            reversed[size++] = static_cast<std::uint8_t>(value | 0x80);
        }
    } else {
        reversed[size++] = static_cast<std::uint8_t>(value & 0x7f);
        for (value >>= 7; value != 0; value >>= 7) {
            reversed[size++] = static_cast<std::uint8_t>(value | 0x80);
        }
    }
    std::reverse_copy(reversed, reversed + size, out);
    return size;
}

void append_varint(std::vector<std::uint8_t>& out, std::uint64_t value) {
    std::uint8_t bytes[9];
    const std::size_t size = put_varint(bytes, value);
    out.insert(out.end(), bytes, bytes + size);
}

// Returns the number of bytes of a record that its cell holds.
std::size_t local_size(std::size_t size, std::size_t most) {
    if (size <= most) {
        return size;
    }
    const std::size_t local = kMinLocal + (size - kMinLocal) % kOverflowBytes;
    return local <= most ? local : kMinLocal;
}

}  // namespace

ImagePages::ImagePages(std::size_t expected_size, int descriptor) : descriptor_(descriptor) {
    pages_.reserve(descriptor < 0 ? expected_size : kWrittenAtOnce + 4 * kPageSize);
    add();
}

std::uint32_t ImagePages::add() {
    if (num_pages_ >= kMaxPages) {
        throw std::length_error("the index is too large for a SQLite database");
    }
    if (descriptor_ >= 0 && pages_.size() >= kWrittenAtOnce) {
        write_pages(num_pages_ - first_kept_);  // not the last one
    }
    const bool skips = (std::uint64_t{num_pages_} + 1) == kLockByte / kPageSize + 1;
    pages_.resize(pages_.size() + (skips ? 2 : 1) * std::size_t{kPageSize});
    if (skips) {
        ++num_pages_;
        std::memset(page(num_pages_), 0, kPageSize);
    }
    return ++num_pages_;
}

// Writes the first of the pages that are kept, and forgets them.
void ImagePages::write_pages(std::uint32_t count) {
    const std::size_t size = std::size_t{count} * kPageSize;
    write_fully(descriptor_, Bytes(pages_).first(size), std::uint64_t{first_kept_ - 1} * kPageSize);
    pages_.erase(pages_.begin(), pages_.begin() + static_cast<std::ptrdiff_t>(size));
    first_kept_ += count;
}

LargeVector<std::uint8_t> ImagePages::release() {
    std::ranges::copy(first_, pages_.begin());
    return std::move(pages_);
}

void ImagePages::finish_file() {
    write_pages(num_pages_ - first_kept_ + 1);
    write_fully(descriptor_, first_, 0);
}

void RecordWriter::add_integer(std::int64_t value) {
    if (value == 0 || value == 1) {
        types_[types_size_++] = static_cast<std::uint8_t>(8 + value);
        return;
    }
    // The types of integers of 1 to 8 bytes, and their sizes: there are none of 5 and 7 bytes.
    constexpr std::uint8_t kTypes[] = {1, 2, 3, 4, 5, 5, 6, 6}, kSizes[] = {1, 2, 3, 4, 6, 6, 8, 8};
    const auto magnitude = static_cast<std::uint64_t>(value ^ value >> 63);
    const int needed = std::bit_width(magnitude) / 8;  // less one; one bit is for the sign
    const std::uint8_t type = kTypes[needed];
    const int size = kSizes[needed];
    types_[types_size_++] = type;
    const std::uint64_t big_endian =
        __builtin_bswap64(static_cast<std::uint64_t>(value) << (64 - 8 * size));
    std::memcpy(room(sizeof big_endian), &big_endian, sizeof big_endian);
    body_size_ += static_cast<std::size_t>(size);
}

std::uint8_t* RecordWriter::room(std::size_t size) {
    const std::size_t begin = kMaxTypes + body_size_;
    if (begin + size > buffer_.size()) {
        buffer_.resize(2 * (begin + size));
    }
    return buffer_.data() + begin;
}

void RecordWriter::add_bytes(Bytes bytes, std::uint64_t type) {
    types_size_ += put_varint(types_.data() + types_size_, type + 2 * bytes.size());
    if (!bytes.empty()) {
        std::memcpy(room(bytes.size()), bytes.data(), bytes.size());
        body_size_ += bytes.size();
    }
}

void RecordWriter::add_blob(std::string_view bytes) {
    add_bytes({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, 12);
}

void RecordWriter::add_text(std::string_view text) {
    add_bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, 13);
}

Bytes RecordWriter::finish() {
    std::uint8_t* const body = room(0);
    std::uint8_t* const record = body - body_size_ - types_size_ - 1;
    record[0] = static_cast<std::uint8_t>(types_size_ + 1);  // below 128: one byte
    std::memcpy(record + 1, types_.data(), types_size_);
    return {record, types_size_ + 1 + body_size_};
}

NodePage::NodePage(Kind kind, std::size_t first) : kind_(kind), first_(first) { clear(); }

void NodePage::clear() {
    pointers_end_ = first_ + (is_interior() ? 12 : 8);
    cells_begin_ = kPageSize;
    num_cells_ = 0;
}

void NodePage::add(Bytes cell) {
    cells_begin_ -= std::max(cell.size(), kMinCell);
    std::memcpy(bytes_.data() + cells_begin_, cell.data(), cell.size());
    std::memset(bytes_.data() + cells_begin_ + cell.size(), 0,
                cell.size() < kMinCell ? kMinCell - cell.size() : 0);
    put16(bytes_.data() + pointers_end_, cells_begin_);
    pointers_end_ += 2;
    ++num_cells_;
}

Bytes NodePage::last_cell() const {
    const std::uint8_t* const before = bytes_.data() + pointers_end_ - 4;
    const std::size_t end = num_cells_ == 1 ? kPageSize : std::size_t{before[0]} << 8 | before[1];
    return Bytes(bytes_).subspan(cells_begin_, end - cells_begin_);
}

void NodePage::drop_last_cell() {
    cells_begin_ += last_cell().size();
    pointers_end_ -= 2;
    --num_cells_;
}

void NodePage::write(std::uint8_t* out, std::uint32_t last_child) const {
    const std::uint8_t* const bytes = bytes_.data();
    std::memcpy(out + first_, bytes + first_, pointers_end_ - first_);
    std::memset(out + pointers_end_, 0, cells_begin_ - pointers_end_);
    std::memcpy(out + cells_begin_, bytes + cells_begin_, kPageSize - cells_begin_);
    std::uint8_t* const header = out + first_;
    std::memset(header, 0, 8);
    header[0] = static_cast<std::uint8_t>(kind_);
    put16(header + 3, num_cells_);
    put16(header + 5, cells_begin_);
    if (is_interior()) {
        put32(header + 8, last_child);
    }
}

TreeWriter::TreeWriter(ImagePages& pages, Kind kind)
    : pages_(pages),
      kind_(kind),
      leaf_(kind == Kind::rows ? NodePage::Kind::leaf_rows : NodePage::Kind::leaf_records) {}

std::uint32_t TreeWriter::write_page(const NodePage& page, std::uint32_t last_child) {
    const std::uint32_t number = pages_.add();
    page.write(pages_.page(number), last_child);
    return number;
}

// Writes the bytes of a record that its cell does not hold. Returns the first page.
std::uint32_t TreeWriter::write_overflow(Bytes rest) {
    const std::uint32_t first = pages_.add();
    for (std::uint32_t page = first;;) {
        const Bytes here = rest.first(std::min(rest.size(), kOverflowBytes));
        std::uint8_t* const bytes = pages_.page(page);
        put32(bytes, 0);
        std::memcpy(bytes + 4, here.data(), here.size());
        std::memset(bytes + 4 + here.size(), 0, kOverflowBytes - here.size());
        rest = rest.subspan(here.size());
        if (rest.empty()) {
            return first;
        }
        const std::uint32_t next = pages_.add();
        put32(pages_.page(page), next);
        page = next;
    }
}

void TreeWriter::make_cell(std::int64_t rowid, Bytes record) {
    const std::size_t local =
        local_size(record.size(), kind_ == Kind::rows ? kMaxLocalOfRow : kMaxLocalOfRecord);
    std::uint8_t* next = cell_bytes_.data();
    next += put_varint(next, record.size());
    if (kind_ == Kind::rows) {
        next += put_varint(next, static_cast<std::uint64_t>(rowid));
    }
    std::memcpy(next, record.data(), local);
    next += local;
    if (local != record.size()) {
        put32(next, write_overflow(record.subspan(local)));
        next += 4;
    }
    cell_ = Bytes(cell_bytes_).first(static_cast<std::size_t>(next - cell_bytes_.data()));
}

void TreeWriter::add(std::int64_t rowid, Bytes record) {
    make_cell(rowid, record);
    if (kind_ == Kind::records && !pending_.empty()) {
        // The pending record separates the full leaf from the next one, which now is not empty.
        const std::uint32_t page = write_page(leaf_);
        leaf_.clear();
        add_child(0, page, pending_);
        pending_.clear();
    } else if (!leaf_.has_room(cell_.size())) {
        if (kind_ == Kind::records) {
            pending_.assign(cell_.begin(), cell_.end());
            return;
        }
        const std::uint32_t page = write_page(leaf_);
        leaf_.clear();
        rowid_key_.clear();
        append_varint(rowid_key_, static_cast<std::uint64_t>(last_rowid_));
        add_child(0, page, rowid_key_);
    }
    leaf_.add(cell_);
    last_rowid_ = rowid;
}

// Adds a page to a level above the leaves. Another page will follow after the separator.
void TreeWriter::add_child(std::size_t level, std::uint32_t child, Bytes separator) {
    if (level == levels_.size()) {
        levels_.emplace_back(kind_ == Kind::rows ? NodePage::Kind::interior_rows
                                                 : NodePage::Kind::interior_records);
    }
    Cell cell(4);
    put32(cell.data(), child);
    cell.insert(cell.end(), separator.begin(), separator.end());
    if (!levels_[level].pending.empty()) {
        end_page(level);
    } else if (!levels_[level].page.has_room(cell.size())) {
        levels_[level].pending = std::move(cell);
        return;
    }
    levels_[level].page.add(cell);
}

// Writes the full page of a level, with the child of the pending cell as its last child.
void TreeWriter::end_page(std::size_t level) {
    const Cell pending = std::move(levels_[level].pending);
    levels_[level].pending.clear();
    const std::uint32_t last_child =
        std::uint32_t{pending[0]} << 24 | pending[1] << 16 | pending[2] << 8 | pending[3];
    const std::uint32_t page = write_page(levels_[level].page, last_child);
    levels_[level].page.clear();
    add_child(level + 1, page, Bytes(pending).subspan(4));
}

// Writes the full leaf without its last record, which separates it from the pending one.
void TreeWriter::split_leaf() {
    const Bytes last = leaf_.last_cell();
    const Cell separator(last.begin(), last.end());
    leaf_.drop_last_cell();
    const std::uint32_t page = write_page(leaf_);
    leaf_.clear();
    add_child(0, page, separator);
    leaf_.add(pending_);
    pending_.clear();
}

// Writes the last page of a level and returns its number.
std::uint32_t TreeWriter::finish_level(std::size_t level, std::uint32_t last_child) {
    NodePage& page = levels_[level].page;
    if (!levels_[level].pending.empty()) {
        // The pending cell alone would leave the next page without a cell: it gets one more child.
        const Cell pending = std::move(levels_[level].pending);
        levels_[level].pending.clear();
        const Bytes last = page.last_cell();
        levels_[level].pending.assign(last.begin(), last.end());
        page.drop_last_cell();
        end_page(level);
        levels_[level].page.add(pending);
    }
    return write_page(levels_[level].page, last_child);
}

std::uint32_t TreeWriter::finish() {
    if (!pending_.empty()) {
        split_leaf();
    }
    std::uint32_t page = write_page(leaf_);
    for (std::size_t level = 0; level < levels_.size(); ++level) {
        page = finish_level(level, page);
    }
    return page;
}

void write_first_page(ImagePages& pages, std::span<const std::vector<std::uint8_t>> records) {
    NodePage page(NodePage::Kind::leaf_rows, kImageHeaderSize);
    for (std::size_t number = 0; number < records.size(); ++number) {
        std::vector<std::uint8_t> cell;
        append_varint(cell, records[number].size());
        append_varint(cell, number + 1);
        cell.insert(cell.end(), records[number].begin(), records[number].end());
        if (!page.has_room(cell.size())) {
            throw std::logic_error("the schema of an index does not fit into a page");
        }
        page.add(cell);
    }
    std::uint8_t* const header = pages.page(1);
    std::memset(header, 0, kImageHeaderSize);
    page.write(header);
    constexpr char kMagic[] = "SQLite format 3";
    std::memcpy(header, kMagic, sizeof kMagic);
    put16(header + 16, kPageSize);
    header[18] = header[19] = 1;  // not in WAL mode
    header[21] = 64;              // fractions of a page that SQLite requires
    header[22] = header[23] = 32;
    put32(header + 24, 1);  // counts changes
    put32(header + 28, pages.num_pages());
    put32(header + 40, 1);        // counts changes of the schema
    put32(header + 44, 4);        // the format of the schema
    put32(header + 56, 1);        // UTF-8
    put32(header + 92, 1);        // the count of changes for which the next field is valid
    put32(header + 96, 3040000);  // the version of SQLite whose format this is
}

}  // namespace gompfs
