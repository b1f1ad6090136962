// Joins small parts of a grammar to larger ones.
#pragma once

#include <vector>

#include "text/grammar.h"

namespace gompfs {

// Joins consecutive parts until they have a certain number of symbols. Statistics sort and spill
// the n-grams of each part, so thousands of small parts take more time and memory than some hundred
// larger ones. The parts must fit together: a part may continue only the last file of the part
// before.
std::vector<Part> group_parts(std::vector<Part> parts, unsigned num_threads);

}  // namespace gompfs
