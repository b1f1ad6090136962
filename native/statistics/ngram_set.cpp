// Numbers the n-grams of documents; see ngram_set.h.
#include "statistics/ngram_set.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>

#include "common/cancellation.h"

namespace gompfs {
namespace {

constexpr std::size_t kMaxWords = std::size_t{1} << 31;
constexpr unsigned kFilterBitsLog2 = 4;  // bits of the filter for each n-gram
constexpr unsigned kSlotsLog2 = 1;       // slots for each n-gram

// The number of bits that number 2^extra slots for each of `count` items.
unsigned bits_for(std::size_t count, unsigned extra) {
    return static_cast<unsigned>(std::bit_width(std::max<std::size_t>(count, 4))) + extra;
}

}  // namespace

NgramWindow::NgramWindow(unsigned length) : length_(length) {
    for (unsigned word = 0; word < length; ++word) {
        weight_ *= kBase;
    }
}

NgramSet::NgramSet(unsigned length) : length_(length) {
    if (length < 1 || length > kMaxLongNgram) {
        throw std::invalid_argument("n-grams have 1 to 255 words");
    }
}

void NgramSet::add_text(std::string_view text, const Tokenizer& tokenizer) {
    CancellationPoint point;
    tokenizer.for_each_word(text, [&](std::string_view word) {
        point();
        add(word);
    });
    end_document();
}

void NgramSet::add_words(std::span<const std::string_view> words) {
    std::for_each(words.begin(), words.end(), [this](std::string_view word) { add(word); });
    end_document();
}

void NgramSet::add(std::string_view word) {
    const WordKey key(word);
    std::uint32_t number = table_.find(key);
    if (number == kUnknown) {
        words_.emplace_back(word);
        number = table_.find_or_add(WordKey(words_.back()));
        word_hashes_.push_back(key.hash);
    }
    if (text_.size() == kMaxWords) {
        throw std::length_error("the documents have too many words");
    }
    text_.push_back(number);
}

void NgramSet::end_document() {
    document_starts_.push_back(static_cast<std::uint32_t>(text_.size()));
}

void NgramSet::finish() {
    const unsigned slot_bits = bits_for(text_.size(), kSlotsLog2);
    slots_.assign(std::size_t{1} << slot_bits, {});
    slot_shift_ = 64 - slot_bits;
    number_ngrams();
    list_documents();
}

// Fills ngrams_, the slots and the filter.
void NgramSet::number_ngrams() {
    const unsigned filter_bits = bits_for(text_.size(), kFilterBitsLog2);
    filter_.assign((std::size_t{1} << filter_bits) / 64, 0);
    filter_shift_ = 64 - filter_bits;
    NgramWindow window(length_);
    CancellationPoint point;
    for (std::uint32_t document = 0; document < num_documents(); ++document) {
        window.clear();
        const auto begin = static_cast<std::ptrdiff_t>(ngrams_.size());
        for (auto at = document_starts_[document]; at < document_starts_[document + 1]; ++at) {
            point();
            if (window.push(text_[at], word_hashes_[text_[at]])) {
                ngrams_.push_back(find_or_add(window, at + 1 - length_));
                const std::uint64_t bit = window.hash() >> filter_shift_;
                filter_[bit / 64] |= std::uint64_t{1} << bit % 64;
            }
        }
        std::sort(ngrams_.begin() + begin, ngrams_.end());
        ngrams_.erase(std::unique(ngrams_.begin() + begin, ngrams_.end()), ngrams_.end());
        ngram_starts_.push_back(static_cast<std::uint32_t>(ngrams_.size()));
    }
}

// Fills documents_.
void NgramSet::list_documents() {
    of_ngram_starts_.assign(num_ngrams() + std::size_t{1}, 0);
    for (const std::uint32_t ngram : ngrams_) {
        ++of_ngram_starts_[ngram + 1];
    }
    std::partial_sum(of_ngram_starts_.begin(), of_ngram_starts_.end(), of_ngram_starts_.begin());
    std::vector<std::uint32_t> ends(of_ngram_starts_.begin(), of_ngram_starts_.end() - 1);
    documents_.resize(ngrams_.size());
    for (std::uint32_t document = 0; document < num_documents(); ++document) {
        for (const std::uint32_t ngram : ngrams_of(document)) {
            documents_[ends[ngram]++] = document;
        }
    }
}

bool NgramSet::equals(const NgramWindow& window, std::uint32_t number) const {
    const std::uint32_t* const words = text_.data() + firsts_[number];
    for (unsigned distance = 0; distance < length_; ++distance) {
        if (window.from_end(distance) != words[length_ - 1 - distance]) {
            return false;
        }
    }
    return true;
}

std::uint32_t NgramSet::find_in_slots(const NgramWindow& window) const {
    const auto tag = static_cast<std::uint32_t>(window.hash());
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = window.hash() >> slot_shift_; slots_[at].number != kUnknown;
         at = (at + 1) & mask) {
        if (slots_[at].tag == tag && equals(window, slots_[at].number)) {
            return slots_[at].number;
        }
    }
    return kUnknown;
}

std::uint32_t NgramSet::find_or_add(const NgramWindow& window, std::uint32_t first) {
    const std::uint32_t known = find_in_slots(window);
    if (known != kUnknown) {
        return known;
    }
    std::size_t at = window.hash() >> slot_shift_;
    while (slots_[at].number != kUnknown) {
        at = (at + 1) & (slots_.size() - 1);
    }
    const std::uint32_t number = num_ngrams();
    slots_[at] = {static_cast<std::uint32_t>(window.hash()), number};
    firsts_.push_back(first);
    return number;
}

bool NgramSet::may_occur(std::span<const std::uint32_t> words) const {
    if (!is_small()) {
        return true;
    }
    std::vector<bool> occurs(num_words());
    for (const std::uint32_t word : words) {
        if (word != kUnknown) {
            occurs[word] = true;
        }
    }
    return std::any_of(firsts_.begin(), firsts_.end(), [&](std::uint32_t first) {
        return std::all_of(text_.begin() + first, text_.begin() + first + length_,
                           [&](std::uint32_t word) { return occurs[word]; });
    });
}

}  // namespace gompfs
