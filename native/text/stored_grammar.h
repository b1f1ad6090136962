// The grammar of a part as bytes, for temporary storage. Only this process reads them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/part_grammar.h"

namespace gompfs {

std::vector<std::uint8_t> store_grammar(const PartGrammar& part);
PartGrammar load_grammar(std::span<const std::uint8_t> bytes);

}  // namespace gompfs
