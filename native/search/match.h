// Where a match is in a text.
#pragma once

#include <cstddef>

namespace gompfs::search {

struct Match {
    std::size_t begin, end;
};

}  // namespace gompfs::search
