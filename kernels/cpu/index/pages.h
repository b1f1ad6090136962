// Checks that the pages of a SQLite image form trees, before SQLite reads it.
#pragma once

#include <cstdint>
#include <span>

namespace gompfs {

// The root page of a b-tree. Keys of a b-tree of records (a table WITHOUT ROWID, or an index) are
// their first num_key_fields fields; those of a b-tree of rows are the rowids.
struct Root {
    std::uint32_t page;
    std::uint32_t num_key_fields;
};

// SQLite follows the page numbers that an image has, wherever they lead: an image of a few pages
// that lead to one another can stand for any number of rows. This check makes what SQLite reads
// proportional to the image: each page is used at most once, by the b-trees of `roots`, that of the
// schema (page 1), their overflow chains or the freelist; cells lie in their pages, do not take
// more bytes than the page has, and their payloads are as long as they say. The keys of each b-tree
// ascend, so that a query that goes on after the last key it has seen comes to an end. Takes about
// 2 ms for 1,000 pages of short records. Throws std::invalid_argument, naming what is wrong.
void check_pages(std::span<const std::uint8_t> image, std::span<const Root> roots);

}  // namespace gompfs
