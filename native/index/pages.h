// Checks that the pages of a SQLite image form trees, before SQLite reads it.
//
// An archive's index is a SQLite database, and an archive may come from anybody. SQLite follows the
// page numbers in an image wherever they lead: an image of a few pages that point to each other can
// stand for any number of rows. After this check, the work that SQLite does is proportional to the
// size of the image.
#pragma once

#include <cstdint>
#include <span>

#include "index/tree_pages.h"

namespace gompfs {

// Checks that every page is used at most once: by the b-trees of `roots`, by the b-tree of the
// schema (page 1), by an overflow chain of these, or by the freelist. Cells must lie inside their
// pages, must not overlap, and their payloads must have the length that they claim. The keys of
// each b-tree must ascend, so that a query that continues after the last key it has seen ends.
// Takes about 2 ms per 1,000 pages of short records. Throws std::invalid_argument, naming what is
// wrong.
void check_pages(std::span<const std::uint8_t> image, std::span<const Root> roots);

}  // namespace gompfs
