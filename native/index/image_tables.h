// Reads the records of the tables in an image that SQLite has written for this process to a file.
//
// One page of each level of a b-tree is in memory.
// Such an image is not from an archive, so its pages are not checked for cycles. No access leaves
// the image all the same. The format is described at https://www.sqlite.org/fileformat2.html.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"

namespace gompfs {

// The pages of an image.
class ImageTables {
  public:
    // Called with the rowid, 0 in a table WITHOUT ROWID, and the record.
    using Visit = std::function<void(std::int64_t, Bytes)>;

    // Throws std::invalid_argument if the file is no SQLite database, and std::system_error.
    explicit ImageTables(int descriptor);

    // Calls visit for all records of a table, in the order of their keys.
    void visit(std::string_view table, const Visit& visit);

  private:
    void visit_page(std::uint32_t number, std::size_t depth, const Visit& visit);
    void visit_cell(const std::uint8_t* cell, const std::uint8_t* page_end, bool has_rowid,
                    const Visit& visit);
    // Reads a page.
    void read_page(std::uint32_t number, std::vector<std::uint8_t>& page) const;

    const int descriptor_;
    std::uint32_t page_size_ = 0, usable_ = 0;
    std::map<std::string, std::uint32_t, std::less<>> roots_;
    std::vector<std::vector<std::uint8_t>> pages_;  // of each level
    std::vector<std::uint8_t> overflow_;            // a page of a record
    std::vector<std::uint8_t> whole_;               // a record with overflow pages
};

// Reads the fields of a record in order. Throws std::invalid_argument if there is no field of the
// wanted type.
class FieldReader {
  public:
    explicit FieldReader(Bytes record);

    std::int64_t integer();
    std::string_view text() { return bytes_of_type(13); }
    std::string_view blob() { return bytes_of_type(12); }
    // Skips a field that must be NULL.
    void null();

  private:
    std::string_view bytes_of_type(std::uint64_t first_type);
    std::uint64_t next_type();
    const std::uint8_t* take(std::uint64_t size);

    const std::uint8_t* type_;
    const std::uint8_t* types_end_;
    const std::uint8_t* next_;
    const std::uint8_t* end_;
};

}  // namespace gompfs
