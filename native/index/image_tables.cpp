// Reads records of b-trees; see image_tables.h.
#include "index/image_tables.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "common/read_fully.h"
#include "index/columns.h"

namespace gompfs {
namespace {

constexpr std::size_t kImageHeader = 100, kMaxDepth = 20;

enum PageType : std::uint8_t {
    kInteriorRecords = 2,
    kInteriorRows = 5,
    kLeafRecords = 10,
    kLeafRows = 13
};

std::uint32_t big_endian16(const std::uint8_t* bytes) {
    return std::uint32_t{bytes[0]} << 8 | bytes[1];
}

std::uint32_t big_endian32(const std::uint8_t* bytes) {
    return big_endian16(bytes) << 16 | big_endian16(bytes + 2);
}

// Reads a variable-length integer: seven bits per byte, highest first; a ninth byte has eight.
std::uint64_t read_varint(const std::uint8_t*& next, const std::uint8_t* end) {
    std::uint64_t value = 0;
    for (int index = 0; next != end; ++index) {
        const std::uint8_t byte = *next++;
        if (index == 8) {
            return value << 8 | byte;
        }
        value = value << 7 | (byte & 0x7f);
        if (byte < 0x80) {
            return value;
        }
    }
    fail_index("a number of a record is cut off");
}

}  // namespace

ImageTables::ImageTables(int descriptor) : descriptor_(descriptor), pages_(kMaxDepth) {
    constexpr char kMagic[] = "SQLite format 3";
    std::array<std::uint8_t, kImageHeader> header{};
    read_fully(descriptor, header, 0);
    if (std::memcmp(header.data(), kMagic, sizeof kMagic) != 0) {
        fail_index("it is no SQLite database");
    }
    const std::uint32_t stored_size = big_endian16(header.data() + 16);
    page_size_ = stored_size == 1 ? 65536 : stored_size;
    usable_ = page_size_ - header[20];
    if (page_size_ < 512 || usable_ < 480) {
        fail_index("its pages have an impossible size");
    }
    std::map<std::string, std::uint32_t, std::less<>> roots;
    visit_page(1, 0, [&](std::int64_t, Bytes record) {
        FieldReader reader(record);
        if (reader.text() == "table") {
            const std::string name(reader.text());
            reader.text();
            roots[name] = static_cast<std::uint32_t>(reader.integer());
        }
    });
    roots_ = std::move(roots);
}

void ImageTables::visit(std::string_view table, const Visit& visit) {
    const auto root = roots_.find(table);
    if (root == roots_.end()) {
        fail_index("it has no table " + std::string(table));
    }
    visit_page(root->second, 0, visit);
}

void ImageTables::read_page(std::uint32_t number, std::vector<std::uint8_t>& page) const {
    page.resize(page_size_);
    const std::uint64_t offset = (std::uint64_t{number} - 1) * page_size_;
    if (number == 0 || read_fully(descriptor_, page, offset) != page_size_) {
        fail_index("it has no page " + std::to_string(number));
    }
}

void ImageTables::visit_page(std::uint32_t number, std::size_t depth, const Visit& visit) {
    if (depth == kMaxDepth) {
        fail_index("a b-tree is too deep");
    }
    read_page(number, pages_[depth]);
    const std::uint8_t* const begin = pages_[depth].data();
    const std::uint8_t* const end = begin + usable_;
    const std::uint8_t* const header = begin + (number == 1 ? kImageHeader : 0);
    const std::uint8_t type = header[0];
    const bool is_leaf = type == kLeafRecords || type == kLeafRows;
    const std::uint32_t num_cells = big_endian16(header + 3);
    const std::uint8_t* const pointers = header + (is_leaf ? 8 : 12);
    if (num_cells > static_cast<std::size_t>(end - pointers) / 2) {
        fail_index("a page has too many cells");
    }
    for (std::uint32_t index = 0; index < num_cells; ++index) {
        const std::uint8_t* const cell = begin + big_endian16(pointers + std::size_t{2} * index);
        if (cell + 4 > end) {
            fail_index("a cell lies outside its page");
        }
        if (is_leaf) {
            visit_cell(cell, end, type == kLeafRows, visit);
            continue;
        }
        visit_page(big_endian32(cell), depth + 1, visit);
        if (type == kInteriorRecords) {
            visit_cell(cell + 4, end, false, visit);
        }
    }
    if (!is_leaf) {
        visit_page(big_endian32(header + 8), depth + 1, visit);
    }
}

void ImageTables::visit_cell(const std::uint8_t* cell, const std::uint8_t* page_end, bool has_rowid,
                             const Visit& visit) {
    const std::uint64_t size = read_varint(cell, page_end);
    const auto rowid = has_rowid ? static_cast<std::int64_t>(read_varint(cell, page_end)) : 0;
    const std::uint64_t most = has_rowid ? usable_ - 35 : (usable_ - 12) * 64 / 255 - 23;
    const std::uint64_t least = (usable_ - 12) * 32 / 255 - 23;
    std::uint64_t local = size;
    if (size > most) {
        local = least + (size - least) % (usable_ - 4);
        local = local <= most ? local : least;
    }
    if (local + (local == size ? 0 : 4) > static_cast<std::uint64_t>(page_end - cell)) {
        fail_index("a cell is longer than its page");
    }
    if (local == size) {
        visit(rowid, {cell, size});
        return;
    }
    whole_.assign(cell, cell + local);
    for (std::uint32_t next = big_endian32(cell + local); whole_.size() != size;) {
        read_page(next, overflow_);
        const std::uint8_t* const bytes = overflow_.data();
        const std::uint64_t here = std::min<std::uint64_t>(size - whole_.size(), usable_ - 4);
        whole_.insert(whole_.end(), bytes + 4, bytes + 4 + here);
        next = big_endian32(bytes);
    }
    visit(rowid, whole_);
}

FieldReader::FieldReader(Bytes record) : type_(record.data()), end_(record.data() + record.size()) {
    const std::uint64_t header_size = read_varint(type_, end_);
    if (header_size > record.size()) {
        fail_index("a record is shorter than its header");
    }
    types_end_ = next_ = record.data() + header_size;
}

std::uint64_t FieldReader::next_type() {
    if (type_ >= types_end_) {
        fail_index("a record lacks fields");
    }
    return read_varint(type_, types_end_);
}

const std::uint8_t* FieldReader::take(std::uint64_t size) {
    if (size > static_cast<std::uint64_t>(end_ - next_)) {
        fail_index("a record is shorter than its fields");
    }
    const std::uint8_t* const bytes = next_;
    next_ += size;
    return bytes;
}

std::int64_t FieldReader::integer() {
    constexpr std::uint8_t kSizes[] = {0, 1, 2, 3, 4, 6, 8};
    const std::uint64_t type = next_type();
    if (type == 8 || type == 9) {
        return static_cast<std::int64_t>(type - 8);
    }
    if (type == 0 || type > 6) {
        fail_index("a field is not an integer");
    }
    const std::uint8_t* const bytes = take(kSizes[type]);
    std::uint64_t value = bytes[0] >= 0x80 ? ~std::uint64_t{0} : 0;
    for (std::uint8_t index = 0; index < kSizes[type]; ++index) {
        value = value << 8 | bytes[index];
    }
    return static_cast<std::int64_t>(value);
}

std::string_view FieldReader::bytes_of_type(std::uint64_t first_type) {
    const std::uint64_t type = next_type();
    if (type < first_type || type % 2 != first_type % 2) {
        fail_index(first_type % 2 == 0 ? "a field is not a blob" : "a field is not a text");
    }
    const std::uint64_t size = (type - first_type) / 2;
    return {reinterpret_cast<const char*>(take(size)), size};
}

void FieldReader::null() {
    if (next_type() != 0) {
        fail_index("a field is not NULL");
    }
}

}  // namespace gompfs
