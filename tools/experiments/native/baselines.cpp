// The baselines of the papers on TADOC as a library with a C interface, for tadoc.py: Sequitur, and
// sequential TADOC. And Re-Pair, which gompfs uses, beside Sequitur.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sequential.h"
#include "sequitur.h"
#include "statistics/corpus.h"
#include "text/grammar.h"
#include "text/recursive_pairing.h"

using namespace gompfs;

namespace {

template <typename Value>
std::vector<Value> copy(const Value* values, std::uint64_t size) {
    return {values, values + size};
}

}  // namespace

// Builds the rules of a part. The caller frees them.
extern "C" Rules* build_rules(const Symbol* symbols, std::uint64_t size, std::uint32_t num_words,
                              bool by_sequitur) {
    std::vector<Symbol> text = copy(symbols, size);
    return new Rules(by_sequitur ? build_sequitur(text, num_words)
                                 : RecursivePairing().build(text, num_words));
}
extern "C" std::uint32_t num_rules(const Rules* rules) { return rules->size(); }
extern "C" const std::uint64_t* rule_starts(const Rules* rules) { return rules->starts.data(); }
extern "C" const Symbol* rule_symbols(const Rules* rules) { return rules->symbols.data(); }
extern "C" void free_rules(Rules* rules) { delete rules; }

// A grammar of words whose bytes follow each other; word i begins at starts[i].
extern "C" Grammar* new_grammar(const std::uint64_t* starts, std::uint64_t num_words,
                                const char* bytes) {
    auto* const grammar = new Grammar();
    grammar->dictionary.starts.assign(starts, starts + num_words + 1);
    grammar->dictionary.bytes.assign(bytes, bytes + starts[num_words]);
    return grammar;
}
extern "C" void add_part(Grammar* grammar, bool continues, std::uint64_t num_tokens,
                         const std::uint64_t* inos, std::uint64_t num_files,
                         const std::uint32_t* words, std::uint64_t num_words,
                         const std::uint64_t* starts, std::uint64_t num_rules,
                         const Symbol* symbols) {
    grammar->parts.push_back({continues,
                              num_tokens,
                              copy(inos, num_files),
                              copy(words, num_words),
                              {copy(starts, num_rules + 1), copy(symbols, starts[num_rules])}});
}
extern "C" void free_grammar(Grammar* grammar) { delete grammar; }

// Counts the n-grams of files, which are numbered in the order of `inos`. The caller frees the
// result.
extern "C" std::vector<CountedNgram>* count_ngrams(const Grammar* grammar,
                                                   const std::uint64_t* inos,
                                                   std::uint64_t num_files, unsigned ngram_length,
                                                   bool per_file) {
    std::vector<Corpus::File> files;
    for (std::uint64_t file = 0; file < num_files; ++file) {
        files.push_back({inos[file], std::string()});
    }
    const Corpus corpus({grammar}, std::move(files), ngram_length);
    return new std::vector<CountedNgram>(count_sequentially(corpus, per_file));
}
extern "C" std::uint64_t num_ngrams(const std::vector<CountedNgram>* ngrams) {
    return ngrams->size();
}
// Writes the keys as two halves, low and high; files; and counts.
extern "C" void copy_ngrams(const std::vector<CountedNgram>* ngrams, std::uint64_t* keys,
                            std::uint32_t* files, std::uint64_t* counts) {
    for (const CountedNgram& ngram : *ngrams) {
        *keys++ = static_cast<std::uint64_t>(ngram.key);
        *keys++ = static_cast<std::uint64_t>(ngram.key >> 64);
        *files++ = ngram.file;
        *counts++ = ngram.count;
    }
}
extern "C" void free_ngrams(std::vector<CountedNgram>* ngrams) { delete ngrams; }
