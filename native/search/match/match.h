// Where a match is in a text.
#pragma once

#include <cstddef>
#include <stdexcept>

namespace gompfs::search {

struct Match {
    std::size_t begin, end;
};

// A search that takes too many steps; the message says so in one line.
class SearchError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace gompfs::search
