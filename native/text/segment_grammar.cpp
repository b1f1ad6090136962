// Makes one grammar of the parts of a segment; see segment_grammar.h.
//
// 1. Each part is read and taken apart (part_words.h), on all threads, and the pieces of its root
//    are given to the files whose extents they are (part_files.h).
// 2. The words of all parts and those of the section are merged into one dictionary. Until then a
//    part has the numbers of its local words in a list, and those of its global words.
// 3. Small parts are joined to larger ones (part_groups.h).
//
// The text of a large archive has some hundred million symbols, so every step frees what the next
// ones do not need.
//
// A file over several parts that shares its bytes with others is the exception: its other names get
// parts of their own, because only the first file of a part may continue.
#include "text/segment_grammar.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/failures.h"
#include "common/large_vector.h"
#include "text/part_files.h"
#include "text/part_groups.h"
#include "text/token_check.h"
#include "text/word_list.h"
#include "text/word_prefix.h"

namespace gompfs {
namespace {

[[noreturn]] void fail(const char* what) { throw std::invalid_argument(what); }

// The words of the section in byte order, and their numbers in it.
std::pair<WordList, std::vector<std::uint32_t>> sorted_list_of(const TokenList& words) {
    std::vector<std::string_view> texts;
    std::vector<WordPrefix> prefixes;
    for (std::uint32_t number = 0; number < words.size(); ++number) {
        texts.push_back(words[number]);
        prefixes.emplace_back(words[number], number);
    }
    sort_prefixes(prefixes, texts);
    WordList list;
    std::vector<std::uint32_t> numbers;
    for (const WordPrefix& prefix : prefixes) {
        list.append(texts[prefix.number]);
        numbers.push_back(prefix.number);
    }
    return {std::move(list), std::move(numbers)};
}

// The most symbols in parts of other names of files: such parts are copies.
constexpr std::uint64_t kMaxCopiedSymbols = std::uint64_t{1} << 26;

// Puts parts in order: all first files of a piece, then the other names of large files.
std::vector<Part> join(std::vector<MadeParts> made) {
    std::vector<Part> parts, others;
    std::uint64_t num_copied = 0;
    std::uint64_t num_tokens = 0;
    const auto check = [&](const Part& part, const Part* before) {
        num_tokens += part.num_tokens;
        if (part.num_tokens >= kMaxTokens || num_tokens >= kMaxTokens) {
            fail("it has too many words");
        }
        if (part.continues && (before == nullptr || before->inos.empty() ||
                               before->inos.back() != part.inos.front())) {
            fail("a file does not continue in the next part");
        }
    };
    for (MadeParts& each : made) {
        check(each.part, parts.empty() ? nullptr : &parts.back());
        parts.push_back(std::move(each.part));
        for (Part& other : each.of_others) {
            num_copied += other.rules.symbols.size();
            if (num_copied > kMaxCopiedSymbols) {
                fail("too many files share the bytes of a large file");
            }
            others.push_back(std::move(other));
        }
    }
    std::stable_sort(others.begin(), others.end(), [](const Part& left, const Part& right) {
        return left.inos.front() < right.inos.front();
    });
    for (Part& other : others) {
        check(other, &parts.back());
        parts.push_back(std::move(other));
    }
    return parts;
}

}  // namespace

void check_joints(std::span<const PartEnds> ends,
                  std::span<const std::span<const TextExtent>> extents, WordRule rule) {
    for (std::size_t part = 1; part < ends.size(); ++part) {
        if (continues(extents, part) && !can_continue(rule, ends[part - 1], ends[part])) {
            fail("a word of its text is in two parts");
        }
    }
}

namespace {

// Merging takes time for each list of words, and thousands of small parts have thousands of short
// lists. So the words of up to this many parts are sorted into one list. With few parts, lists are
// shorter, so that there are enough of them for all threads.
constexpr std::size_t kMaxPartsOfList = 32;
constexpr std::size_t kMinLists = 64;

// All parts, without the dictionary of their words.
struct ReadParts {
    std::vector<MadeParts> made;
    std::size_t parts_of_list;
    std::vector<WordList> lists;                 // of local words; the last one of the section
    std::vector<std::uint32_t> section_numbers;  // of the words of the last list

    std::size_t list_of(std::size_t part) const { return part / parts_of_list; }
};

// Sorts the local words of some parts. Their numbers in the parts become those in the list.
WordList sort_local_words(std::span<const TokenList> local_words, std::span<MadeParts> parts) {
    std::vector<std::string_view> words;
    std::vector<WordPrefix> prefixes;
    for (const TokenList& of_part : local_words) {
        for (std::uint32_t number = 0; number < of_part.size(); ++number) {
            prefixes.emplace_back(of_part[number], static_cast<std::uint32_t>(words.size()));
            words.push_back(of_part[number]);
        }
    }
    sort_prefixes(prefixes, words);
    WordList list;
    std::vector<std::uint32_t> numbers(words.size());
    for (std::size_t index = 0; index < prefixes.size(); ++index) {
        const std::string_view word = words[prefixes[index].number];
        if (index == 0 || word != words[prefixes[index - 1].number]) {
            list.append(word);
        }
        numbers[prefixes[index].number] = list.size() - 1;
    }
    const std::uint32_t* first = numbers.data();
    for (std::size_t part = 0; part < parts.size(); ++part) {
        const std::uint32_t count = local_words[part].size();
        std::copy_n(first, count, parts[part].part.words.begin());
        for (Part& other : parts[part].of_others) {
            std::copy_n(first, count, other.words.begin());
        }
        parts[part].num_local_words = count;
        first += count;
    }
    return list;
}

// `words_of(part)` returns the words of a part.
template <typename WordsOf>
ReadParts read_parts(std::span<const std::span<const TextExtent>> extents,
                     const WordSection& section, WordRule rule, unsigned num_threads,
                     WordsOf&& words_of) {
    const std::size_t num_parts = extents.size();
    ReadParts parts;
    parts.made.resize(num_parts);
    parts.parts_of_list = std::clamp<std::size_t>(num_parts / kMinLists, 1, kMaxPartsOfList);
    const std::size_t num_lists = (num_parts + parts.parts_of_list - 1) / parts.parts_of_list;
    parts.lists.resize(num_lists + 1);
    std::vector<PartEnds> ends(num_parts);
    parallel_for_all(num_lists + 1, num_threads, [&](std::size_t index) {
        if (index == 0) {
            std::tie(parts.lists.back(), parts.section_numbers) = sorted_list_of(section.words());
            return;
        }
        const std::size_t first = (index - 1) * parts.parts_of_list;
        const std::size_t end = std::min(first + parts.parts_of_list, num_parts);
        std::vector<TokenList> local_words;
        for (std::size_t part = first; part < end; ++part) {
            throw_if_cancelled();
            PartWords words = words_of(part);
            parts.made[part] = make_parts(words, extents[part]);
            ends[part] = words.ends;
            local_words.push_back(std::move(words.local_words));
        }
        parts.lists[index - 1] =
            sort_local_words(local_words, std::span(parts.made).subspan(first, end - first));
    });
    check_joints(ends, extents, rule);
    return parts;
}

// Makes the dictionary of all words, and gives the words of parts their numbers in it.
Dictionary number_words(ReadParts& parts, unsigned num_threads) {
    std::vector<std::vector<std::uint32_t>> ranks;
    std::vector<DictionaryRange> ranges = merge_word_lists(parts.lists, num_threads, ranks);
    parts.lists = {};
    Dictionary dictionary = expand_ranges(std::move(ranges), num_threads);
    std::vector<std::uint32_t> section_ranks(parts.section_numbers.size());
    for (std::size_t index = 0; index < section_ranks.size(); ++index) {
        section_ranks[parts.section_numbers[index]] = ranks.back()[index];
    }
    parallel_for(parts.made.size(), num_threads, [&](std::size_t index) {
        const std::vector<std::uint32_t>& local_ranks = ranks[parts.list_of(index)];
        MadeParts& made = parts.made[index];
        const auto number = [&](Part& part) {
            for (std::size_t word = 0; word < part.words.size(); ++word) {
                std::uint32_t& of_word = part.words[word];
                of_word =
                    word < made.num_local_words ? local_ranks[of_word] : section_ranks[of_word];
            }
        };
        number(made.part);
        std::for_each(made.of_others.begin(), made.of_others.end(), number);
    });
    return dictionary;
}

}  // namespace

Grammar read_segment_grammar(const StoredParts& stored, std::span<const TextExtent> extents,
                             Bytes word_section, std::uint64_t max_word_bytes,
                             const Tokenizer& tokenizer, unsigned num_threads) {
    ReadParts parts;
    {
        const WordSection section = word_section.empty()
                                        ? WordSection()
                                        : WordSection(word_section, max_word_bytes, num_threads);
        check_tokens(section, tokenizer);
        const auto by_part = split_by_part(extents, stored.size());
        parts = read_parts(by_part, section, tokenizer.rule(), num_threads, [&](std::size_t part) {
            return read_words(stored.read(part), section, tokenizer, by_part[part],
                              continues(by_part, part + 1));
        });
    }
    Grammar grammar{tokenizer.rule(), number_words(parts, num_threads), {}};
    grammar.parts = group_parts(join(std::move(parts.made)), num_threads);
    free_unused_memory();
    return grammar;
}

Grammar grammar_of_words(std::vector<PartWords> words, std::span<const TextExtent> extents,
                         WordRule rule, unsigned num_threads) {
    ReadParts parts =
        read_parts(split_by_part(extents, words.size()), WordSection(), rule, num_threads,
                   [&](std::size_t part) { return std::move(words[part]); });
    Grammar grammar{rule, number_words(parts, num_threads), {}};
    for (MadeParts& made : parts.made) {
        grammar.parts.push_back(std::move(made.part));
    }
    return grammar;
}

}  // namespace gompfs
