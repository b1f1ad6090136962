// Merges parts; see part_merger.h. The word lists of all parts are merged into one dictionary, and
// the words of each part become numbers in it. Parts share nothing else.
#include "grammar/part_merger.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/parallel.h"
#include "grammar/numbers.h"
#include "grammar/section_writer.h"

namespace gompfs {
namespace {

// ranks[part][index] becomes the number of a word of a part in the dictionary.
std::vector<DictionaryRange> merge_words(std::vector<BuiltPart>& parts, unsigned num_threads,
                                         std::vector<std::vector<std::uint32_t>>& ranks) {
    std::vector<WordList> lists;
    lists.reserve(parts.size());
    for (BuiltPart& part : parts) {
        lists.push_back(std::move(part.words));
    }
    return merge_word_lists(lists, num_threads, ranks);
}

}  // namespace

std::vector<std::vector<std::uint8_t>> merge_to_section(std::vector<BuiltPart> parts,
                                                        BuilderKind builder, WordRule word_rule,
                                                        unsigned num_threads) {
    std::vector<std::vector<std::uint32_t>> ranks;
    std::vector<DictionaryRange> ranges = merge_words(parts, num_threads, ranks);
    std::uint32_t num_words = 0;
    for (const DictionaryRange& range : ranges) {
        num_words += range.num_words;
    }
    std::vector<std::vector<std::uint8_t>> pieces;
    pieces.push_back(
        write_header({word_rule, builder, num_words, static_cast<std::uint32_t>(parts.size())}));
    for (const auto stream : {&DictionaryRange::shared_lengths, &DictionaryRange::suffix_lengths,
                              &DictionaryRange::suffixes}) {
        for (DictionaryRange& range : ranges) {
            pieces.push_back(std::move(range.*stream));
        }
    }
    const std::size_t num_before = pieces.size();
    pieces.resize(num_before + 2 * parts.size());
    parallel_for(parts.size(), num_threads, [&](std::size_t number) {
        BuiltPart part = std::move(parts[number]);
        for (std::uint32_t& word : part.head.words) {
            word = ranks[number][word];
        }
        ranks[number] = {};
        pieces[num_before + 2 * number] = write_part_head(part.head);
        pieces[num_before + 2 * number + 1] = std::move(part.rules);
    });
    return pieces;
}

// A range shares nothing with the range before, so ranges are expanded independently.
Dictionary expand_ranges(std::vector<DictionaryRange> ranges, unsigned num_threads) {
    std::vector<std::uint64_t> first_words{0}, first_bytes{0};
    for (const DictionaryRange& range : ranges) {
        first_words.push_back(first_words.back() + range.num_words);
        first_bytes.push_back(std::accumulate(range.shared_lengths.begin(),
                                              range.shared_lengths.end(),
                                              first_bytes.back() + range.suffixes.size()));
    }
    Dictionary dictionary;
    dictionary.starts.resize(first_words.back() + 1);
    dictionary.bytes.resize(first_bytes.back());
    parallel_for(ranges.size(), num_threads, [&](std::size_t index) {
        const DictionaryRange range = std::move(ranges[index]);
        const std::uint8_t* length = range.suffix_lengths.data();
        auto suffix = range.suffixes.begin();
        std::uint64_t* start = &dictionary.starts[first_words[index]];
        char* const begin = dictionary.bytes.data() + first_bytes[index];
        const char* previous = begin;
        char* next = begin;
        for (const std::uint8_t shared : range.shared_lengths) {
            const auto rest = static_cast<std::ptrdiff_t>(read_number(length));
            std::copy_n(previous, shared, next);
            std::copy_n(suffix, rest, next + shared);
            suffix += rest;
            previous = next;
            next += shared + rest;
            *++start = static_cast<std::uint64_t>(next - dictionary.bytes.data());
        }
    });
    return dictionary;
}

Grammar merge_to_grammar(std::vector<BuiltPart> parts, WordRule word_rule, unsigned num_threads) {
    std::vector<std::vector<std::uint32_t>> ranks;
    Grammar grammar{word_rule, BuilderKind::none, {}, {}};
    grammar.dictionary = expand_ranges(merge_words(parts, num_threads, ranks), num_threads);
    for (std::size_t number = 0; number < parts.size(); ++number) {
        Part& part = grammar.parts.emplace_back();
        static_cast<PartHead&>(part) = std::move(parts[number].head);
        part.rules = std::move(parts[number].root);
        for (std::uint32_t& word : part.words) {
            word = ranks[number][word];
        }
    }
    return grammar;
}

}  // namespace gompfs
