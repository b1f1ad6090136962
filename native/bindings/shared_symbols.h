// The symbols of a part, as Python holds them: gompfs._native.text.SymbolTable.
#pragma once

#include <memory>

#include "codec/symbol_table.h"

namespace gompfs {

struct SharedSymbols {
    std::shared_ptr<const SymbolTable> table;
};

}  // namespace gompfs
