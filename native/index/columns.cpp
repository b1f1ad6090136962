// Reads and writes the columns of an index; see columns.h.
#include "index/columns.h"

#include <algorithm>
#include <cstring>

namespace gompfs {
namespace {

constexpr std::uint8_t kMore = 0x80;  // a flag of each byte: another byte follows

std::uint64_t num_larger(Bytes plane) {
    return static_cast<std::uint64_t>(
        std::count_if(plane.begin(), plane.end(), [](std::uint8_t byte) { return byte >= kMore; }));
}

}  // namespace

NumberColumn::NumberColumn(Bytes bytes, std::uint64_t num_rows) {
    std::uint64_t size = num_rows;  // of the next plane
    for (std::size_t plane = 0; size != 0; ++plane) {
        if (plane == kMaxBytes) {
            fail_index("a number of a column has more than 64 bits");
        }
        if (size > bytes.size()) {
            fail_index("a column is shorter than its rows");
        }
        const Bytes here = bytes.first(size);
        if (plane != 0 && std::memchr(here.data(), 0, here.size()) != nullptr) {
            fail_index("a number of a column has more bytes than it needs");
        }
        if (plane == kMaxBytes - 1 &&
            std::ranges::any_of(here, [](auto byte) { return byte > 1; })) {
            fail_index("a number of a column has more than 64 bits");
        }
        planes_[plane] = here.data();
        bytes = bytes.subspan(size);
        size = num_larger(here);
    }
    if (!bytes.empty()) {
        fail_index("a column is longer than its rows");
    }
}

std::uint64_t NumberColumn::next_long(std::uint8_t first) {
    std::uint64_t value = first & ~kMore;
    std::uint8_t byte = first;
    for (std::size_t plane = 1; byte >= kMore; ++plane) {
        byte = *planes_[plane]++;
        value |= static_cast<std::uint64_t>(byte & ~kMore) << 7 * plane;
    }
    return value;
}

StringColumn::StringColumn(Bytes bytes, std::uint64_t num_rows)
    : next_(reinterpret_cast<const char*>(bytes.data())) {
    const auto num_ends = static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), 0));
    if (num_ends != num_rows || (!bytes.empty() && bytes.back() != 0)) {
        fail_index("a column does not have as many strings as its table has rows");
    }
}

std::uint64_t ColumnCutter::next_number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (next_ == end_) {
            fail_index("its columns are cut off");
        }
        const std::uint8_t byte = *next_++;
        value |= static_cast<std::uint64_t>(byte & ~kMore) << shift;
        if (byte < kMore) {
            if ((byte == 0 && shift != 0) || (shift == 63 && byte > 1)) {
                break;
            }
            return value;
        }
    }
    fail_index("the size of a table or column is impossible");
}

Bytes ColumnCutter::next_column() {
    const std::uint64_t size = next_number();
    if (size > static_cast<std::uint64_t>(end_ - next_)) {
        fail_index("a column is longer than the columns together");
    }
    const Bytes column(next_, size);
    next_ += size;
    return column;
}

void ColumnCutter::finish() const {
    if (next_ != end_) {
        fail_index("bytes follow its columns");
    }
}

void append_number(std::vector<std::uint8_t>& columns, std::uint64_t value) {
    for (; value >= kMore; value >>= 7) {
        columns.push_back(static_cast<std::uint8_t>(value | kMore));
    }
    columns.push_back(static_cast<std::uint8_t>(value));
}

std::uint64_t NumberColumnWriter::size() const {
    std::uint64_t size = 0;
    for (const GrowingBytes& plane : planes_) {
        size += plane.size();
    }
    return size;
}

void NumberColumnWriter::move_to(std::vector<std::uint8_t>& columns) {
    append_number(columns, size());
    for (GrowingBytes& plane : planes_) {
        plane.move_to(columns);
    }
}

void ByteColumnWriter::add_string(std::string_view text) {
    if (text.find('\0') != text.npos) {
        fail_index("a name or text has a NUL");
    }
    bytes_.append({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    bytes_.push_back(0);
}

void ByteColumnWriter::move_to(std::vector<std::uint8_t>& columns) {
    append_number(columns, size());
    bytes_.move_to(columns);
}

}  // namespace gompfs
