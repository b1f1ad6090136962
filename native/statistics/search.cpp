// Implements the search for an n-gram; see search.h. Parts are searched in parallel. n-grams that
// span two parts are counted separately (search_edges).
#include "statistics/search.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "common/failures.h"
#include "statistics/ngrams.h"
#include "statistics/postings.h"

namespace gompfs {
namespace {

// The key of an n-gram; nothing if one of its words does not occur at all.
std::optional<NgramKey> key_of(const Corpus& corpus, const std::vector<std::string_view>& words) {
    NgramKey key = 0;
    for (std::size_t index = 0; index < words.size(); ++index) {
        const std::uint32_t rank = corpus.words.lower_bound(words[index]);
        if (rank == corpus.words.size() || corpus.words.word(rank) != words[index]) {
            return std::nullopt;
        }
        key = key << corpus.bits | (index + 1 < words.size() ? corpus.inner_rank(rank) : rank);
    }
    return key;
}

// Whether a part contains all of some words.
bool has_words(const Part& part, const Dictionary& dictionary,
               const std::vector<std::string_view>& words) {
    return std::all_of(words.begin(), words.end(), [&](std::string_view word) {
        const std::uint32_t number = dictionary.lower_bound(word);
        return number != dictionary.size() && dictionary.word(number) == word &&
               std::find(part.words.begin(), part.words.end(), number) != part.words.end();
    });
}

class Searcher {
  public:
    Searcher(const Corpus& corpus, NgramKey key) : corpus_(corpus), key_(key) {}

    void search(std::size_t grammar, const Part& part) {
        const NgramReader reader(corpus_, grammar, part);
        const Rules& rules = part.rules;
        std::vector<std::uint64_t> totals(rules.size());
        CancellationPoint point;
        const auto count = [&](Symbol symbol, WordBuffer& tail) {
            std::uint64_t found = 0;
            reader.read(symbol, tail, [&](NgramKey key) { found += key == key_; });
            return found + (symbol < part.words.size() ? 0 : totals[symbol - part.words.size()]);
        };
        for (std::uint32_t rule = rules.size(); --rule > 0;) {
            point();
            WordBuffer tail;
            for (std::uint64_t at = rules.starts[rule]; at < rules.starts[rule + 1]; ++at) {
                totals[rule] += count(rules.symbols[at], tail);
            }
        }
        std::uint64_t at = 0;
        for (const std::uint64_t ino : part.inos) {
            WordBuffer tail;
            std::uint64_t total = 0;
            for (; rules.symbols[at] != kSplitter; ++at) {
                point();
                total += count(rules.symbols[at], tail);
            }
            ++at;
            add(corpus_.file_number(ino), total);
        }
    }

    void search_edges(unsigned num_threads) {
        Postings postings({"", std::uint64_t{64} << 20, std::uint64_t{64} << 20});
        gather_over_edges(corpus_, true, num_threads, postings);
        for (const Run& run : postings.runs) {
            RunReader reader(postings.spill, run, 0);
            for (KeyedPosting posting; reader.next(posting);) {
                add(posting.file, posting.key == key_ ? posting.count : 0);
            }
        }
    }

    std::vector<FileCount> finish() const {
        std::vector<FileCount> found;
        for (const auto& [file, count] : counts_) {
            found.push_back({file, count});
        }
        return found;
    }

  private:
    void add(std::uint32_t file, std::uint64_t count) {
        if (file != kLeftOut && count != 0) {
            const std::lock_guard lock(mutex_);
            counts_[file] += count;
        }
    }

    const Corpus& corpus_;
    const NgramKey key_;
    std::mutex mutex_;
    std::map<std::uint32_t, std::uint64_t> counts_;
};

}  // namespace

std::vector<FileCount> find_ngram(const Corpus& corpus, const std::vector<std::string_view>& words,
                                  unsigned num_threads) {
    if (words.size() != corpus.ngram_length) {
        throw std::invalid_argument("the n-gram has the wrong number of words");
    }
    const std::optional<NgramKey> key = key_of(corpus, words);
    if (!key) {
        return {};
    }
    Searcher searcher(corpus, *key);
    for (std::size_t grammar = 0; grammar < corpus.grammars.size(); ++grammar) {
        const Grammar& its_grammar = *corpus.grammars[grammar];
        parallel_for_all(its_grammar.parts.size(), num_threads, [&](std::size_t index) {
            const Part& part = its_grammar.parts[index];
            if (has_words(part, its_grammar.dictionary, words)) {
                searcher.search(grammar, part);
            }
        });
    }
    searcher.search_edges(num_threads);
    return searcher.finish();
}

}  // namespace gompfs
