// Makes the table of a dictionary; see dictionary.h.
#include "codec/dictionary.h"

#include <algorithm>
#include <stdexcept>

namespace gompfs {

std::shared_ptr<const SymbolTable> dictionary_table(Bytes content) {
    if (content.empty() || content.size() > kMaxDictionarySize) {
        throw std::invalid_argument("a dictionary has 1 byte to 1 MiB");
    }
    const auto table = std::make_shared<SymbolTable>();
    table->dictionary_size = static_cast<std::uint32_t>(content.size());
    table->pool.resize(kDictionaryPoolSize);
    const auto end = std::copy(content.begin(), content.end(), table->pool.begin());
    std::fill(end, table->pool.end(), std::uint8_t{0});
    return table;
}

}  // namespace gompfs
