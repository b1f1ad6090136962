// Makes parts of the words of files; see tokens.h. A batch of files is cut into parts of 2^20
// words; a file may continue in the next part. All numbers are checked before use, since they come
// from outside the C++ core.
#include "grammar/tokens.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "common/parallel.h"

namespace gompfs {
namespace {

constexpr std::uint64_t kWordsOfPart = 1 << 20;

// The words [begin, end) of a batch, which belong to some of its files or to a piece of one file.
struct PartRange {
    const TokenizedFiles* batch;
    std::size_t first_file;
    std::uint64_t begin, end;
    bool continues;
};

void check(const TokenizedFiles& files, std::size_t num_words) {
    if (files.inos.size() != files.ends.size() || files.words.size() >= kSplitter / 2 ||
        !std::is_sorted(files.ends.begin(), files.ends.end()) ||
        (files.ends.empty() ? 0 : files.ends.back()) != files.words.size() ||
        num_words >= kSplitter / 2) {
        throw std::invalid_argument("the words do not match the files");
    }
}

// Cuts a batch after kWordsOfPart words, and at its end.
void add_ranges(const TokenizedFiles& files, std::vector<PartRange>& ranges) {
    std::uint64_t begin = 0;
    std::size_t first = 0;
    bool continues = files.continues;
    for (std::size_t file = 0; file < files.ends.size(); ++file) {
        while (files.ends[file] - begin > kWordsOfPart) {
            ranges.push_back({&files, first, begin, begin + kWordsOfPart, continues});
            begin += kWordsOfPart;
            continues = file == 0 || files.ends[file - 1] < begin;
            first = file;
        }
    }
    if (!files.ends.empty()) {
        ranges.push_back({&files, first, begin, files.words.size(), continues});
    }
}

Part make_part(const PartRange& range, std::span<const std::uint32_t> ranks) {
    const TokenizedFiles& files = *range.batch;
    std::vector<Symbol> words;
    words.reserve(range.end - range.begin);
    for (const std::uint32_t entry : files.words.subspan(range.begin, range.end - range.begin)) {
        words.push_back(ranks[entry]);
    }
    Part part;
    part.continues = range.continues;
    part.num_tokens = words.size();
    part.words = words;
    std::sort(part.words.begin(), part.words.end());
    part.words.erase(std::unique(part.words.begin(), part.words.end()), part.words.end());
    std::uint64_t at = range.begin;
    for (std::size_t file = range.first_file; file < files.ends.size(); ++file) {
        if (file != range.first_file && at == range.end && at != files.words.size()) {
            break;  // the file begins in the next part
        }
        part.inos.push_back(files.inos[file]);
        throw_if_cancelled();
        for (; at < std::min(files.ends[file], range.end); ++at) {
            const auto found =
                std::lower_bound(part.words.begin(), part.words.end(), words[at - range.begin]);
            part.rules.symbols.push_back(static_cast<Symbol>(found - part.words.begin()));
        }
        part.rules.symbols.push_back(kSplitter);
    }
    part.rules.starts = {0, part.rules.symbols.size()};
    return part;
}

}  // namespace

Grammar grammar_of_tokens(Dictionary dictionary, WordRule word_rule,
                          std::span<const std::uint32_t> ranks,
                          const std::vector<TokenizedFiles>& batches, unsigned num_threads) {
    std::vector<PartRange> ranges;
    for (const TokenizedFiles& files : batches) {
        check(files, dictionary.size());
        add_ranges(files, ranges);
    }
    const auto is_known = [&](std::uint32_t entry) {
        return entry < ranks.size() && ranks[entry] < dictionary.size();
    };
    Grammar grammar{word_rule, BuilderKind::none, std::move(dictionary), {}};
    grammar.parts.resize(ranges.size());
    std::atomic<bool> all_known = true;
    parallel_for(ranges.size(), num_threads, [&](std::size_t index) {
        const PartRange& range = ranges[index];
        const auto words = range.batch->words.subspan(range.begin, range.end - range.begin);
        if (std::all_of(words.begin(), words.end(), is_known)) {
            grammar.parts[index] = make_part(range, ranks);
        } else {
            all_known = false;
        }
    });
    if (!all_known) {
        throw std::invalid_argument("a word is missing in the dictionary");
    }
    return grammar;
}

}  // namespace gompfs
