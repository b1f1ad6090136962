// Searches parts and grammars for n-grams; see overlap.h.
//
// What is found is spilled in runs that are sorted by file, because the n-grams of a file are
// needed together: a document gets a file once, however many n-grams they share. A part gives one
// run. n-grams that span two parts belong to no part, and are read from the edges of the parts.
#include "statistics/overlap.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "common/failures.h"
#include "statistics/counting.h"
#include "statistics/document_overlaps.h"

namespace gompfs {
namespace {

constexpr std::size_t kMaxPostings = std::size_t{1} << 20;  // sorted at once
constexpr std::size_t kMaxPartsInWork = 8;                  // of a grammar; each takes memory

}  // namespace

Overlap::Overlap(const NgramSet& set, std::span<const std::uint64_t> inos, Spill::Options spill)
    : set_(set), postings_(std::move(spill)) {
    for (std::uint32_t number = 0; number < inos.size(); ++number) {
        files_.emplace_back(inos[number], number);
    }
    std::sort(files_.begin(), files_.end());
}

std::uint32_t Overlap::file_number(std::uint64_t ino) const {
    const auto found =
        std::lower_bound(files_.begin(), files_.end(), std::pair(ino, std::uint32_t{0}));
    return found != files_.end() && found->first == ino ? found->second : kLeftOut;
}

void Overlap::check_num_tokens(std::uint64_t num_tokens) {
    if (num_tokens >= kMaxTokens || num_tokens_.fetch_add(num_tokens) >= kMaxTokens - num_tokens) {
        throw std::invalid_argument("there are 2^62 words or more to search");
    }
}

void Overlap::search_grammar(const Grammar& grammar, unsigned num_threads) {
    const std::vector<std::uint32_t> numbers =
        set_.numbers_of(grammar.dictionary.size(), num_threads,
                        [&](std::uint32_t word) { return grammar.dictionary.word(word); });
    const std::size_t first = edges_.size();
    edges_.resize(first + grammar.parts.size());
    const auto at_once = static_cast<unsigned>(std::min<std::size_t>(num_threads, kMaxPartsInWork));
    parallel_for_all(grammar.parts.size(), at_once, [&](std::size_t index) {
        const Part& part = grammar.parts[index];
        std::vector<std::uint32_t> words(part.words.size());
        std::transform(part.words.begin(), part.words.end(), words.begin(),
                       [&](std::uint32_t word) { return numbers[word]; });
        const bool is_last = index + 1 == grammar.parts.size();
        const bool spans = part.continues || is_last || grammar.parts[index + 1].continues;
        if (spans || set_.may_occur(words)) {
            edges_[first + index] = search_part(part, words);
        }
    });
}

// Searches a part, whose words are numbered as in the set. Several threads may call it at once.
Overlap::PartEdge Overlap::search_part(const Part& part, std::span<const std::uint32_t> words) {
    PartEdge edge;
    if (part.inos.empty()) {
        return edge;
    }
    check_num_tokens(part.num_tokens);
    std::vector<std::uint32_t> files;
    for (const std::uint64_t ino : part.inos) {
        files.push_back(file_number(ino));
    }
    PartNgrams ngrams(set_, part, words);
    count_files(ngrams.graph(files));
    return {part.continues,   part.inos.size() == 1, part.inos.front(),
            part.inos.back(), ngrams.first_ends(),   ngrams.last_ends()};
}

void Overlap::count_files(const RuleGraph& graph) {
    if (graph.terms.empty()) {
        return;
    }
    std::optional<LocalTables> tables;
    if (choose_bottom_up(graph, Direction::automatic)) {
        tables = build_local_tables(graph);
    }
    TermCounter counter(graph, tables ? &*tables : nullptr);
    std::vector<KeyedPosting> found;
    for (std::uint32_t file = 0; file < graph.num_files(); ++file) {
        if (graph.files[file] == kLeftOut) {
            continue;
        }
        for (const TermCount& term : counter.count({&file, 1})) {
            const auto ngram = static_cast<std::uint32_t>(graph.keys[term.term]);
            found.push_back({graph.files[file], ngram, term.count});
        }
        if (found.size() > kMaxPostings) {
            add(found);
        }
    }
    add(found);
}

// Spills postings, which may be in any order.
void Overlap::add(std::vector<KeyedPosting>& found) {
    std::sort(found.begin(), found.end());
    RunWriter run;
    for (const KeyedPosting& posting : found) {
        run.add(posting);
    }
    postings_.add(run.finish(postings_.spill));
    found.clear();
}

// Finds the n-grams that span parts: the last words of a part and the first ones of the next.
void Overlap::search_edges() {
    NgramWindow window(set_.length());
    std::vector<KeyedPosting> found;
    std::uint64_t ino = 0;
    const auto push = [&](std::uint32_t word) {
        return window.push(word, set_.hash_of_word(word));
    };
    for (const PartEdge& edge : edges_) {
        throw_if_cancelled();
        if (!edge.continues || edge.first_ino != ino) {
            window.clear();
        }
        const std::uint32_t file = file_number(edge.first_ino);
        for (const std::uint32_t word : edge.first.head) {
            const std::uint32_t ngram = push(word) ? set_.find(window) : kUnknown;
            if (ngram != kUnknown && file != kLeftOut) {
                found.push_back({file, ngram, 1});
            }
        }
        if (!edge.is_one_file || edge.first.is_cut) {
            window.clear();
            const std::vector<std::uint32_t>& last = edge.last.last_words();
            std::for_each(last.begin(), last.end(), push);
        }
        ino = edge.last_ino;
    }
    add(found);
}

std::vector<DocumentOverlap> Overlap::finish(std::size_t max_files) {
    search_edges();
    DocumentOverlaps documents(set_, max_files);
    RunMerger(postings_.spill, postings_.runs, 1)
        .merge(0, [&](NgramKey file, std::uint32_t ngram, std::uint64_t count) {
            documents.add(static_cast<std::uint32_t>(file), ngram, count);
        });
    return documents.finish();
}

}  // namespace gompfs
