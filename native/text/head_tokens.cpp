// Reads the tokens of a head; see head_tokens.h.
#include "text/head_tokens.h"

#include <algorithm>

#include "shared/format_constants.h"
#include "text/word_expander.h"

namespace gompfs {

bool HeadTokens::read(Bytes payload, std::size_t pool_size, HeadArrays::Extent extent) {
    if (pool_size > kMaxPoolSize || !arrays_->read(payload, extent)) {
        return false;
    }
    words_.resize(std::max(words_.size(), pool_size + WordExpander::kMargin));
    words_size_ = 0;
    WordExpander expander(arrays_->token_bytes);
    for (const std::uint32_t prefix : arrays_->prefixes) {
        const std::size_t size =
            expander.expand(prefix, words_.data() + words_size_, pool_size - words_size_);
        if (size == 0) {
            return false;
        }
        words_size_ += size;
    }
    separators_ = expander.rest();
    return true;
}

}  // namespace gompfs
