// Gives the pieces of parts to files; see part_files.h.
#include "text/part_files.h"

#include <algorithm>
#include <numeric>

namespace gompfs {
namespace {

// The number of words that the root of a part stands for, at most kMaxTokens. Rules are visited
// from the last one down, so that every rule is known before it is used.
std::uint64_t num_words_of(const Part& part) {
    const Rules& rules = part.rules;
    std::vector<std::uint64_t> sizes(rules.size());
    for (std::uint32_t rule = rules.size(); rule-- > 0;) {
        std::uint64_t& size = sizes[rule];
        for (std::uint64_t at = rules.starts[rule]; at < rules.starts[rule + 1]; ++at) {
            const Symbol symbol = rules.symbols[at];
            if (symbol != kSplitter) {
                size += symbol < part.words.size() ? 1 : sizes[symbol - part.words.size()];
                size = std::min(size, kMaxTokens);
            }
        }
    }
    return sizes[0];
}

// Assigns the pieces of one part to the files that they belong to.
class PartMaker {
  public:
    explicit PartMaker(const PartWords& words) : words_(words) {}

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
    std::vector<std::uint32_t> numbers_of_words() const;
    void append_rules(std::uint32_t num_shared, Rules& rules) const;
    void append_piece(const RootPiece& piece, std::uint32_t num_shared, Rules& rules) const;
    void append(std::span<const Symbol> symbols, std::uint32_t num_shared, Rules& rules) const;

    const PartWords& words_;
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
                fail_extent();
            }
        }
        if (!files.empty()) {
            assigned.push_back({piece, files});
        }
        extents = extents.subspan(files.size());
    }
    if (!extents.empty()) {
        fail_extent();
    }
    return assigned;
}

// The indexes of the local words, then the numbers of the global ones.
std::vector<std::uint32_t> PartMaker::numbers_of_words() const {
    std::vector<std::uint32_t> numbers(words_.local_words.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    numbers.insert(numbers.end(), words_.global_words.begin(), words_.global_words.end());
    return numbers;
}

// Rules have their numbers after those of shared pieces.
void PartMaker::append(std::span<const Symbol> symbols, std::uint32_t num_shared,
                       Rules& rules) const {
    const std::uint32_t num_words = words_.num_words();
    for (const Symbol symbol : symbols) {
        rules.symbols.push_back(symbol < num_words ? symbol : symbol + num_shared);
    }
}

void PartMaker::append_piece(const RootPiece& piece, std::uint32_t num_shared, Rules& rules) const {
    append(std::span(words_.root).subspan(piece.begin, piece.end - piece.begin), num_shared, rules);
}

void PartMaker::append_rules(std::uint32_t num_shared, Rules& rules) const {
    const std::size_t offset = rules.symbols.size();
    append(words_.rules.symbols, num_shared, rules);
    for (std::uint32_t rule = 1; rule < words_.rules.size(); ++rule) {
        rules.starts.push_back(offset + words_.rules.starts[rule + 1]);
    }
}

// A part of pieces, for all files of each piece or for the first one only.
Part PartMaker::part_of(std::span<const PieceFiles> pieces, bool with_all_files) const {
    Part part;
    part.words = numbers_of_words();
    part.continues = !pieces.empty() && pieces.front().files.front().continues;
    part.rules.symbols.reserve(words_.root.size() + pieces.size() + words_.rules.symbols.size());
    part.rules.starts.reserve(words_.rules.starts.size());
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
    part.num_tokens = num_words_of(part);
    return part;
}

MadeParts PartMaker::make(std::span<const TextExtent> extents) {
    const std::vector<PieceFiles> pieces = assign(extents);
    MadeParts made{part_of(pieces, true), {}, 0};
    for (const PieceFiles& each : pieces) {
        for (std::size_t other = 1; each.spans() && other < each.files.size(); ++other) {
            const PieceFiles alone{each.piece, each.files.subspan(other, 1)};
            made.of_others.push_back(part_of({&alone, 1}, false));
        }
    }
    return made;
}

}  // namespace

bool continues(std::span<const std::span<const TextExtent>> extents, std::size_t part) {
    return part < extents.size() && !extents[part].empty() && extents[part].front().continues;
}

PartWords read_words(const StoredPart& stored, const WordSection& section,
                     const Tokenizer& tokenizer, std::span<const TextExtent> extents,
                     bool goes_on) {
    std::vector<WeightedRange> ranges;
    for (const TextExtent& extent : extents) {
        if (ranges.empty() || ranges.back().offset != extent.offset) {
            ranges.push_back({extent.offset, extent.size, 1});
        }
    }
    PartWords words = stored.head.empty() ? words_of_text(stored.plain_text(), ranges, tokenizer)
                                          : words_of_grammar(stored, section, tokenizer);
    if (goes_on && !words.pieces.empty()) {
        words.pieces.back().goes_on = true;
    }
    return words;
}

MadeParts make_parts(const PartWords& words, std::span<const TextExtent> extents) {
    return PartMaker(words).make(extents);
}

}  // namespace gompfs
