// Reads the dictionary of a section; see section_words.h.
//
// A word is stored as a shared length (one byte), the length of its rest and the rest, in three
// separate streams. The constructor finds the ranges from the shared lengths alone, and measures
// them in parallel. After check(), word() can expand any single word: it starts at the nearest
// anchor, at most 63 words before, finds the rests from there on, and assembles the word from its
// end to its beginning.
#include "grammar/section_words.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "common/failures.h"

namespace gompfs {
namespace {

void check_order(std::string_view previous, std::string_view word) {
    if (word <= previous) {
        fail_section("its words are not in order");
    }
}

std::string_view as_text(const std::uint8_t* bytes, std::uint64_t size) {
    return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

// Cuts the words at words that share nothing, into ranges of roughly equal length.
SectionWords::SectionWords(SectionCursor& in, std::uint32_t num_words, unsigned num_threads)
    : num_words_(num_words) {
    constexpr std::uint32_t kMaxRanges = 128, kMinWords = 1 << 14;
    const auto shared_lengths = in.take(num_words);
    const std::uint32_t step = std::max(num_words / kMaxRanges, kMinWords);
    for (std::uint32_t first = 0; first < num_words;) {
        const std::uint32_t nearest = std::min(num_words - first, step);
        const auto next = std::find(shared_lengths.begin() + first + nearest, shared_lengths.end(),
                                    std::uint8_t{0});
        const auto end = static_cast<std::uint32_t>(next - shared_lengths.begin());
        Range& range = ranges_.emplace_back();
        range.first = first;
        range.shared_lengths = shared_lengths.subspan(first, end - first);
        range.rest_lengths = in.skip_numbers(end - first);
        first = end;
    }
    parallel_for_all(ranges_.size(), num_threads,
                     [&](std::size_t index) { measure(ranges_[index], in.left()); });
    std::uint64_t start = 0;
    for (Range& range : ranges_) {
        range.rests = in.take(range.rest_size).data();
        range.start = start;
        start += range.size;
    }
}

void SectionWords::measure(Range& range, std::uint64_t max_size) const {
    SectionCursor lengths(range.rest_lengths);
    std::uint64_t previous = 0;
    for (const std::uint8_t shared : range.shared_lengths) {
        const std::uint64_t rest = lengths.number();
        if (rest > max_size) {
            fail_section("it ends too early");
        }
        if (shared > previous) {
            fail_section("a word shares more bytes than the previous word has");
        }
        range.rest_size += rest;
        range.size += previous = shared + rest;
    }
}

void SectionWords::check(std::size_t index) {
    Range& range = ranges_[index];
    const std::uint8_t* length = range.rest_lengths.data();
    const std::uint8_t* rest = range.rests;
    std::string word;
    std::uint32_t until_anchor = 0;
    for (const std::uint8_t shared : range.shared_lengths) {
        if (until_anchor-- == 0) {
            range.anchors.push_back({static_cast<std::uint32_t>(range.prefixes.size()),
                                     static_cast<std::uint32_t>(length - range.rest_lengths.data()),
                                     static_cast<std::uint64_t>(rest - range.rests)});
            range.prefixes.append(word, 0, shared);
            until_anchor = kWordsOfAnchor - 1;
        }
        const std::uint64_t size = read_number(length);
        // If a word shares as much as it can with the word before, the next byte alone decides the
        // order.
        if (shared == word.size() || size == 0 ||
            *rest <= static_cast<std::uint8_t>(word[shared])) {
            check_order(std::string_view(word).substr(shared), as_text(rest, size));
        }
        word.resize(shared);
        word.append(as_text(rest, size));
        rest += size;
    }
    check_end(index, word);
}

// Checks the order of the last word of a range and the first word of the next.
void SectionWords::check_end(std::size_t index, std::string_view last_word) const {
    if (index + 1 < ranges_.size()) {
        const Range& next = ranges_[index + 1];
        const std::uint8_t* length = next.rest_lengths.data();
        check_order(last_word, as_text(next.rests, read_number(length)));
    }
}

Dictionary SectionWords::empty_dictionary() const {
    Dictionary dictionary;
    dictionary.starts.resize(num_words_ + std::size_t{1});
    dictionary.starts.back() = ranges_.empty() ? 0 : ranges_.back().start + ranges_.back().size;
    dictionary.bytes.resize(dictionary.starts.back());
    return dictionary;
}

void SectionWords::expand(std::size_t index, Dictionary& dictionary) const {
    const Range& range = ranges_[index];
    const std::uint8_t* length = range.rest_lengths.data();
    const char* rest = reinterpret_cast<const char*>(range.rests);
    char* word = dictionary.bytes.data() + range.start;
    const char* previous = word;
    std::size_t previous_size = 0;
    std::uint64_t* start = dictionary.starts.data() + range.first;
    for (const std::uint8_t shared : range.shared_lengths) {
        *start++ = static_cast<std::uint64_t>(word - dictionary.bytes.data());
        const std::size_t size = read_number(length);
        std::copy_n(previous, shared, word);
        std::copy_n(rest, size, word + shared);
        check_order({previous + shared, previous_size - shared}, {rest, size});
        rest += size;
        previous = word;
        previous_size = shared + size;
        word += previous_size;
    }
    check_end(index, {previous, previous_size});
}

std::string SectionWords::word(std::uint32_t number) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), number,
                         [](std::uint32_t at, const Range& range) { return at < range.first; });
    const Range& range = *(after - 1);
    const std::uint32_t index = number - range.first;
    const std::uint32_t from = index / kWordsOfAnchor * kWordsOfAnchor;
    const Anchor& anchor = range.anchors[index / kWordsOfAnchor];
    const std::uint8_t* length = range.rest_lengths.data() + anchor.rest_length;
    std::array<const std::uint8_t*, kWordsOfAnchor + 1> rests;
    rests[0] = range.rests + anchor.rest;
    for (std::uint32_t at = from; at <= index; ++at) {
        rests[at - from + 1] = rests[at - from] + read_number(length);
    }
    // Assembles the word from its end to its beginning: each shared prefix is in the nearest
    // previous word that shares less.
    std::size_t end = range.shared_lengths[index] + (rests[index - from + 1] - rests[index - from]);
    std::string word(end, '\0');
    for (std::uint32_t at = index + 1; at-- > from && end > 0;) {
        const std::size_t shared = range.shared_lengths[at];
        if (shared < end) {
            std::copy_n(rests[at - from], end - shared, word.begin() + shared);
            end = shared;
        }
    }
    std::copy_n(range.prefixes.begin() + anchor.prefix, end, word.begin());
    return word;
}

}  // namespace gompfs
