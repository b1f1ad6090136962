// A shared dictionary: bytes of an archive that are stored once, from which matches of all blocks
// of gompresso-bit-dictionary may copy (docs/format.md).
//
// Decoders get it as a SymbolTable with a pool and without symbols, in the same way as blocks of
// gompresso-tadoc get the symbols of their part. The pool has zeros after the dictionary, up to the
// greatest address that a payload can name and the longest match from there. So the decoder may
// copy before it compares addresses with the size of the dictionary, once for each row of
// sequences.
#pragma once

#include <memory>
#include <mutex>

#include "codec/parse/dictionary_search.h"
#include "codec/symbol_table.h"
#include "common/bytes.h"
#include "common/copy.h"
#include "shared/dictionary_addresses.h"

namespace gompfs {

// No payload can name this address of a dictionary or a greater one.
constexpr std::size_t kEndOfDictionaryAddresses =
    first_dictionary_address(kFirstDictionarySymbol + kNumDictionarySymbols);
constexpr std::size_t kDictionaryPoolSize =
    kEndOfDictionaryAddresses + kBitMaxMatchLength + kCopyMargin;
static_assert(kDictionaryPoolSize >= kMaxDictionarySize + SymbolTable::kPoolMargin);

// Returns the table that decoders need. Throws std::invalid_argument unless there are 1 to
// kMaxDictionarySize bytes.
std::shared_ptr<const SymbolTable> dictionary_table(Bytes content);

// A dictionary for both directions. Any number of threads may use it.
class SharedDictionary {
  public:
    // Throws what dictionary_table throws.
    explicit SharedDictionary(Bytes content) : table_(dictionary_table(content)) {}

    const std::shared_ptr<const SymbolTable>& table() const { return table_; }
    Bytes content() const { return Bytes(table_->pool).first(table_->dictionary_size); }

    // What the encoder needs; made at the first call.
    const DictionarySearch& search() const {
        std::call_once(search_made_,
                       [this] { search_ = std::make_unique<DictionarySearch>(content()); });
        return *search_;
    }

  private:
    const std::shared_ptr<const SymbolTable> table_;
    mutable std::once_flag search_made_;
    mutable std::unique_ptr<const DictionarySearch> search_;
};

}  // namespace gompfs
