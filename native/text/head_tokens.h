// The words and separators of a head, without its rules: what a search needs to know about a part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/bytes.h"
#include "common/large_vector.h"
#include "text/head_arrays.h"

namespace gompfs {

// Keeps its memory from one head to the next.
class HeadTokens {
  public:
    // Reads the payload of a head whose pool has pool_size bytes. Returns false if it is not valid,
    // as far as its tokens say. With Extent::local_words, there are no global tokens.
    bool read(Bytes payload, std::size_t pool_size,
              HeadArrays::Extent extent = HeadArrays::Extent::tokens);

    // The local words without the prefixes that they share with the words before, and the local
    // separators. All bytes of these occur here.
    Bytes stored_bytes() const { return arrays_->token_bytes; }

    // The local words, each with a space after it; the bytes of the local separators.
    std::size_t num_local_words() const { return arrays_->prefixes.size(); }
    Bytes local_words() const { return Bytes(words_).first(words_size_); }
    Bytes local_separators() const { return separators_; }
    // Numbers in the section `words`, which may have fewer. Ascending.
    std::span<const std::uint32_t> global_words() const { return arrays_->global_words; }
    std::span<const std::uint32_t> global_separators() const { return arrays_->global_separators; }

  private:
    std::unique_ptr<HeadArrays> arrays_ = std::make_unique<HeadArrays>();
    LargeVector<std::uint8_t> words_;  // has space for all symbols, of which most are not written
    std::size_t words_size_ = 0;
    Bytes separators_;
};

}  // namespace gompfs
