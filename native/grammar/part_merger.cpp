// Merges parts; see part_merger.h. The word lists of all parts are merged into one dictionary, and
// the words of each part become numbers in it. Parts share nothing else.
#include "grammar/part_merger.h"

#include <algorithm>
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

Dictionary expand_ranges(const std::vector<DictionaryRange>& ranges) {
    Dictionary dictionary;
    for (const DictionaryRange& range : ranges) {
        const std::uint8_t* length = range.suffix_lengths.data();
        auto suffix = range.suffixes.begin();
        std::size_t previous = 0;
        for (const std::uint8_t shared : range.shared_lengths) {
            const std::size_t start = dictionary.bytes.size();
            const auto rest = static_cast<std::ptrdiff_t>(read_number(length));
            dictionary.bytes.resize(start + shared);
            std::copy_n(dictionary.bytes.begin() + static_cast<std::ptrdiff_t>(previous), shared,
                        dictionary.bytes.begin() + static_cast<std::ptrdiff_t>(start));
            dictionary.bytes.insert(dictionary.bytes.end(), suffix, suffix + rest);
            suffix += rest;
            dictionary.starts.push_back(dictionary.bytes.size());
            previous = start;
        }
    }
    return dictionary;
}

Grammar merge_to_grammar(std::vector<BuiltPart> parts, WordRule word_rule, unsigned num_threads) {
    std::vector<std::vector<std::uint32_t>> ranks;
    const std::vector<DictionaryRange> ranges = merge_words(parts, num_threads, ranks);
    Grammar grammar{word_rule, BuilderKind::none, expand_ranges(ranges), {}};
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
