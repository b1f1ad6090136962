// Makes one grammar of the parts of a segment; see parts_grammar.h.
//
// 1. Each part is taken apart (part_words.h), on all threads.
// 2. The words of all parts and those of the section are merged into one dictionary.
// 3. The pieces of a part's root are given to the files whose extents they are: a piece of no file
// is
//    left out, and a piece of several files becomes a rule that the root has once for each file.
//
// A file over several parts that shares its bytes with others is the exception: its other names get
// parts of their own, because only the first file of a part may continue.
#include "parts/parts_grammar.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/failures.h"
#include "grammar/part_merger.h"
#include "grammar/rule_sizes.h"
#include "grammar/word_head.h"
#include "grammar/word_list.h"
#include "parts/part_words.h"

namespace gompfs {
namespace {

[[noreturn]] void fail(const char* what) { throw std::invalid_argument(what); }

WordList list_of(const TokenList& words) {
    WordList list;
    for (std::uint32_t index = 0; index < words.size(); ++index) {
        if (index != 0 && words[index - 1] >= words[index]) {
            fail("the words of a part are not sorted");
        }
        list.append(words[index]);
    }
    return list;
}

// The words of the section in byte order, and their numbers in it.
std::pair<WordList, std::vector<std::uint32_t>> sorted_list_of(const TokenList& words) {
    std::vector<std::string_view> texts;
    std::vector<WordHead> heads;
    for (std::uint32_t number = 0; number < words.size(); ++number) {
        texts.push_back(words[number]);
        heads.emplace_back(words[number], number);
    }
    sort_heads(heads, texts);
    WordList list;
    std::vector<std::uint32_t> numbers;
    for (const WordHead& head : heads) {
        list.append(texts[head.number]);
        numbers.push_back(head.number);
    }
    return {std::move(list), std::move(numbers)};
}

// A part of the grammar, and the parts of other names of files that span several parts.
struct MadeParts {
    Part part;
    std::vector<Part> of_others;  // each has one file
};

// Assigns the pieces of one part to the files that they belong to.
class PartMaker {
  public:
    PartMaker(const PartWords& words, std::vector<std::uint32_t> dictionary_words)
        : words_(words), dictionary_words_(std::move(dictionary_words)) {}

    MadeParts make(std::span<const TextExtent> extents);

  private:
    struct PieceFiles {
        RootPiece piece;
        std::span<const TextExtent> files;
        // A piece of a file over several parts: only the first of its files is in the main part.
        bool spans() const { return piece.goes_on || files.front().continues; }
    };

    std::vector<PieceFiles> assign(std::span<const TextExtent> extents) const;
    Part part_of(std::span<const PieceFiles> pieces, bool with_all_files) const;
    void append_rules(std::uint32_t num_shared, Rules& rules) const;
    void append_piece(const RootPiece& piece, std::uint32_t num_shared, Rules& rules) const;

    const PartWords& words_;
    const std::vector<std::uint32_t> dictionary_words_;
};

// Pairs pieces with the files whose extents they are. Pieces of no file are left out.
std::vector<PartMaker::PieceFiles> PartMaker::assign(std::span<const TextExtent> extents) const {
    std::vector<PieceFiles> assigned;
    for (const RootPiece& piece : words_.pieces) {
        const auto end =
            std::find_if(extents.begin(), extents.end(),
                         [&](const TextExtent& extent) { return extent.offset != piece.offset; });
        const std::span files(extents.begin(), end);
        for (const TextExtent& file : files) {
            if (file.size != piece.size || file.continues != files.front().continues) {
                fail("an extent of a file is not a piece of a part");
            }
        }
        if (!files.empty()) {
            assigned.push_back({piece, files});
        }
        extents = extents.subspan(files.size());
    }
    if (!extents.empty()) {
        fail("an extent of a file is not a piece of a part");
    }
    return assigned;
}

// Appends the symbols of a piece. Rules have their numbers after those of shared pieces.
void PartMaker::append_piece(const RootPiece& piece, std::uint32_t num_shared, Rules& rules) const {
    for (std::size_t index = piece.begin; index < piece.end; ++index) {
        const Symbol symbol = words_.root[index];
        rules.symbols.push_back(symbol < words_.num_words() ? symbol : symbol + num_shared);
    }
}

void PartMaker::append_rules(std::uint32_t num_shared, Rules& rules) const {
    for (std::size_t rule = 1; rule < words_.rules.size(); ++rule) {
        for (const Symbol symbol : words_.rules[rule]) {
            rules.symbols.push_back(symbol < words_.num_words() ? symbol : symbol + num_shared);
        }
        rules.starts.push_back(rules.symbols.size());
    }
}

// A part of pieces, for all files of each piece or for the first one only.
Part PartMaker::part_of(std::span<const PieceFiles> pieces, bool with_all_files) const {
    Part part;
    part.words = dictionary_words_;
    part.continues = !pieces.empty() && pieces.front().files.front().continues;
    part.rules.starts.push_back(0);
    std::vector<const RootPiece*> shared;
    const auto is_shared = [&](const PieceFiles& each) {
        return with_all_files && each.files.size() > 1 && !each.spans() &&
               each.piece.end - each.piece.begin > 1;
    };
    const auto num_shared =
        static_cast<std::uint32_t>(std::count_if(pieces.begin(), pieces.end(), is_shared));
    for (const PieceFiles& each : pieces) {
        const bool all = with_all_files && !each.spans();
        for (const TextExtent& file : each.files.first(all ? each.files.size() : 1)) {
            part.inos.push_back(file.ino);
            if (is_shared(each)) {
                part.rules.symbols.push_back(words_.num_words() +
                                             static_cast<Symbol>(shared.size() + 1));
            } else {
                append_piece(each.piece, num_shared, part.rules);
            }
            part.rules.symbols.push_back(kSplitter);
        }
        if (is_shared(each)) {
            shared.push_back(&each.piece);
        }
    }
    part.rules.starts.push_back(part.rules.symbols.size());
    for (const RootPiece* const piece : shared) {
        append_piece(*piece, num_shared, part.rules);
        part.rules.starts.push_back(part.rules.symbols.size());
    }
    append_rules(num_shared, part.rules);
    part.num_tokens = rule_sizes(part)[0];
    return part;
}

MadeParts PartMaker::make(std::span<const TextExtent> extents) {
    const std::vector<PieceFiles> pieces = assign(extents);
    MadeParts made{part_of(pieces, true), {}};
    for (const PieceFiles& each : pieces) {
        for (std::size_t other = 1; each.spans() && other < each.files.size(); ++other) {
            const PieceFiles alone{each.piece, each.files.subspan(other, 1)};
            made.of_others.push_back(part_of({&alone, 1}, false));
        }
    }
    return made;
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

std::vector<std::span<const TextExtent>> split_by_part(std::span<const TextExtent> extents,
                                                       std::size_t num_parts) {
    std::vector<std::span<const TextExtent>> of_part;
    for (std::size_t part = 0; part < num_parts; ++part) {
        const auto end = std::find_if(extents.begin(), extents.end(),
                                      [&](const TextExtent& each) { return each.part != part; });
        of_part.emplace_back(extents.begin(), end);
        extents = extents.subspan(of_part.back().size());
    }
    return of_part;
}

Grammar read_parts_grammar(std::span<const StoredPart> stored, std::span<const TextExtent> extents,
                           Bytes word_section, std::uint64_t max_word_bytes,
                           const Tokenizer& tokenizer, unsigned num_threads) {
    const WordSection section =
        word_section.empty() ? WordSection() : WordSection(word_section, max_word_bytes);
    const std::vector<std::span<const TextExtent>> of_part = split_by_part(extents, stored.size());
    std::vector<PartWords> parts(stored.size());
    std::vector<WordList> lists(stored.size() + 1);
    std::vector<std::uint32_t> section_numbers;  // of the words of the last list
    parallel_for_all(stored.size() + 1, num_threads, [&](std::size_t index) {
        if (index == 0) {
            std::tie(lists.back(), section_numbers) = sorted_list_of(section.words());
            return;
        }
        const StoredPart& part = stored[index - 1];
        std::vector<WeightedRange> ranges;
        for (const TextExtent& extent : of_part[index - 1]) {
            if (ranges.empty() || ranges.back().offset != extent.offset) {
                ranges.push_back({extent.offset, extent.size, 1});
            }
        }
        parts[index - 1] =
            part.head.empty()
                ? words_of_text({reinterpret_cast<const char*>(part.text.data()), part.text.size()},
                                ranges, tokenizer)
                : words_of_grammar(part.head, part.blocks, section);
        lists[index - 1] = list_of(parts[index - 1].local_words);
        const bool goes_on =
            index < stored.size() && !of_part[index].empty() && of_part[index].front().continues;
        if (goes_on && !parts[index - 1].pieces.empty()) {
            parts[index - 1].pieces.back().goes_on = true;
        }
    });
    std::vector<std::vector<std::uint32_t>> ranks;
    const std::vector<DictionaryRange> ranges = merge_word_lists(lists, num_threads, ranks);
    std::vector<std::uint32_t> section_ranks(section.words().size());
    for (std::size_t index = 0; index < section_numbers.size(); ++index) {
        section_ranks[section_numbers[index]] = ranks.back()[index];
    }
    std::vector<MadeParts> made(stored.size());
    parallel_for_all(stored.size(), num_threads, [&](std::size_t index) {
        const PartWords words = std::exchange(parts[index], {});
        std::vector<std::uint32_t> numbers = std::move(ranks[index]);
        for (const std::uint32_t number : words.global_words) {
            numbers.push_back(section_ranks[number]);
        }
        made[index] = PartMaker(words, std::move(numbers)).make(of_part[index]);
    });
    return {tokenizer.rule(), BuilderKind::repair, expand_ranges(ranges), join(std::move(made))};
}

}  // namespace gompfs
