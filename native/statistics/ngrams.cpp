// Computes the head and tail buffers of a part's rules; see ngrams.h. Rules are visited from the
// last one down, so that the buffers of a rule are known before it is used.
#include "statistics/ngrams.h"

#include <algorithm>

#include "common/cancellation.h"

namespace gompfs {

NgramReader::NgramReader(const Corpus& corpus, std::size_t grammar, const Part& part)
    : WordReader(corpus),
      grammar_(grammar),
      part_(part),
      num_words_(static_cast<std::uint32_t>(part.words.size())),
      heads_(part.rules.size()),
      tails_(part.rules.size()) {
    if (capacity_ == 0) {
        return;
    }
    const Symbol* const symbols = part.rules.symbols.data();
    CancellationPoint point;
    for (std::uint32_t rule = part.rules.size(); --rule > 0;) {
        point();
        const Symbol* const begin = symbols + part.rules.starts[rule];
        const Symbol* const end = symbols + part.rules.starts[rule + 1];
        heads_[rule] = head(begin, end);
        for (const Symbol* at = begin; at != end; ++at) {
            read(*at, tails_[rule], [](NgramKey) {});
        }
    }
}

WordBuffer NgramReader::head(const Symbol* begin, const Symbol* end) const {
    WordBuffer head;
    for (; begin != end && head.size < capacity_; ++begin) {
        if (*begin < num_words_) {
            head.push(rank(*begin), capacity_);
            continue;
        }
        const WordBuffer& inner = heads_[*begin - num_words_];
        for (std::uint32_t word = 0; word < inner.size && head.size < capacity_; ++word) {
            head.push(inner.words[word], capacity_);
        }
    }
    return head;
}

}  // namespace gompfs
