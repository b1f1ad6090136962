// Gathers the postings of a corpus; see postings.h.
//
// For each part: build its rule graph, choose a direction (counting.h), count the terms of each
// file, sort the postings by term and file, and spill them as a run. n-grams that span two parts
// belong to no part; they are read from the first and last words of the parts (PartEdge). Up to 8
// parts are processed at once; if there are fewer parts than threads, threads share the files of a
// part.
#include "statistics/postings.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "common/failures.h"

namespace gompfs {
namespace {

struct PartOfGrammar {
    std::size_t grammar;
    const Part* part;
};

// The first and last words of a part, from which n-grams that span parts are made.
struct PartEdge {
    bool continues = false;
    std::uint64_t first_ino = 0, last_ino = 0;
    bool is_one_file = true;
    WordBuffer head, tail;  // of the first file, and of the last file
};

PartEdge read_edge(const NgramReader& reader, const Part& part) {
    PartEdge edge;
    if (part.inos.empty()) {
        return edge;
    }
    edge = {part.continues, part.inos.front(), part.inos.back(), part.inos.size() == 1, {}, {}};
    const Symbol* const begin = part.rules.symbols.data();
    const Symbol* const end = begin + part.rules.starts[1];
    edge.head = reader.head(begin, std::find(begin, end, kSplitter));
    const Symbol* last = end - 1;
    while (last != begin && last[-1] != kSplitter) {
        --last;
    }
    for (; last != end - 1; ++last) {
        reader.read(*last, edge.tail, [](NgramKey) {});
    }
    return edge;
}

// Sorts by (term, file).
void sort_postings(std::vector<Posting>& postings, std::size_t num_terms) {
    const auto by_file = [](const Posting& left, const Posting& right) {
        return left.file < right.file;
    };
    if (!std::is_sorted(postings.begin(), postings.end(), by_file)) {
        std::stable_sort(postings.begin(), postings.end(), by_file);
    }
    throw_if_cancelled();
    std::vector<std::uint64_t> offsets(num_terms + 1);
    for (const Posting& posting : postings) {
        ++offsets[posting.term + 1];
    }
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    std::vector<Posting> sorted(postings.size());
    for (const Posting& posting : postings) {
        sorted[offsets[posting.term]++] = posting;
    }
    postings = std::move(sorted);
}

class Gatherer {
  public:
    Gatherer(const Corpus& corpus, bool per_file, const Traversal& traversal, Postings& postings)
        : corpus_(corpus), per_file_(per_file), traversal_(traversal), postings_(postings) {
        for (std::size_t grammar = 0; grammar < corpus.grammars.size(); ++grammar) {
            for (const Part& part : corpus.grammars[grammar]->parts) {
                parts_.push_back({grammar, &part});
            }
        }
    }

    void gather() {
        const auto num_threads = static_cast<std::size_t>(traversal_.num_threads);
        // If fewer parts than threads are processed at once, several threads share the files of a
        // part.
        const std::size_t at_once = std::clamp<std::size_t>(parts_.size(), 1, kMaxPartsInWork);
        const std::size_t inside = std::max<std::size_t>(num_threads / at_once, 1);
        parallel_for_all(
            parts_.size(), static_cast<unsigned>(std::min(at_once, num_threads)),
            [&](std::size_t part) { count_part(parts_[part], static_cast<unsigned>(inside)); });
    }

    void gather_over_edges() {
        std::vector<PartEdge> edges(parts_.size());
        const auto goes_on = [&](std::size_t index) {
            return index < parts_.size() && parts_[index].part->continues;
        };
        parallel_for_all(parts_.size(), traversal_.num_threads, [&](std::size_t index) {
            if (goes_on(index) || goes_on(index + 1)) {
                const auto& [grammar, part] = parts_[index];
                edges[index] = read_edge(NgramReader(corpus_, grammar, *part), *part);
            }
        });
        add_over_edges(edges);
    }

  private:
    static constexpr std::size_t kMaxPostings = std::size_t{4} << 20;  // sorted at once
    // Limit for any number of threads, as each part takes memory.
    static constexpr std::size_t kMaxPartsInWork = 8;

    void count_part(const PartOfGrammar& of_grammar, unsigned num_threads) {
        const auto& [grammar, part] = of_grammar;
        const bool is_counted = std::any_of(part->inos.begin(), part->inos.end(), [&](auto ino) {
            return corpus_.file_number(ino) != kLeftOut;
        });
        if (!is_counted) {
            return;
        }
        const NgramReader reader(corpus_, grammar, *part);
        const RuleGraph graph = build_rule_graph(corpus_, reader, *part);
        std::optional<LocalTables> tables;
        if (choose_bottom_up(graph, per_file_ || traversal_.direction != Direction::automatic
                                        ? traversal_.direction
                                        : Direction::top_down)) {
            tables = build_local_tables(graph);
        }
        count_graph(graph, tables ? &*tables : nullptr, num_threads);
    }

    void count_graph(const RuleGraph& graph, const LocalTables* tables, unsigned num_threads) {
        std::vector<std::uint32_t> files;
        for (std::uint32_t file = 0; file < graph.num_files(); ++file) {
            if (graph.files[file] != kLeftOut) {
                files.push_back(file);
            }
        }
        const std::size_t num_tasks = std::min<std::size_t>(num_threads, files.size());
        parallel_for_all(num_tasks, num_threads, [&](std::size_t task) {
            const std::size_t begin = files.size() * task / num_tasks;
            const std::size_t end = files.size() * (task + 1) / num_tasks;
            count_files(graph, tables, {files.data() + begin, end - begin});
        });
    }

    void count_files(const RuleGraph& graph, const LocalTables* tables,
                     std::span<const std::uint32_t> files) {
        TermCounter counter(graph, tables);
        std::vector<Posting> found;
        const auto spill = [&] {
            sort_postings(found, graph.num_terms());
            postings_.add(graph.keys, found);
            found.clear();
        };
        const std::size_t step = per_file_ ? 1 : files.size();
        for (std::size_t first = 0; first < files.size(); first += step) {
            throw_if_cancelled();
            const std::uint32_t number = per_file_ ? graph.files[files[first]] : 0;
            const auto counts = counter.count(files.subspan(first, step));
            if (found.size() + counts.size() > kMaxPostings) {
                spill();
            }
            for (const TermCount& count : counts) {
                found.push_back({count.term, number, count.count});
            }
        }
        spill();
    }

    void add_over_edges(const std::vector<PartEdge>& edges) {
        std::vector<KeyedPosting> found;
        const WordReader reader(corpus_);
        WordBuffer tail;
        std::uint64_t ino = 0;
        CancellationPoint point;
        for (const PartEdge& edge : edges) {
            point();
            if (!edge.continues || edge.first_ino != ino) {
                tail = {};
            }
            const std::uint32_t file = corpus_.file_number(edge.first_ino);
            for (std::uint32_t word = 0; word < edge.head.size; ++word) {
                reader.read_word(edge.head.words[word], tail, [&](NgramKey key) {
                    if (file != kLeftOut) {
                        found.push_back({key, per_file_ ? file : 0, 1});
                    }
                });
            }
            if (!edge.is_one_file || edge.tail.size == corpus_.ngram_length - 1) {
                tail = edge.tail;
            }
            ino = edge.last_ino;
        }
        std::sort(found.begin(), found.end());
        RunWriter run;
        for (const KeyedPosting& posting : found) {
            run.add(posting);
        }
        postings_.add(run.finish(postings_.spill));
    }

    const Corpus& corpus_;
    const bool per_file_;
    const Traversal& traversal_;
    Postings& postings_;
    std::vector<PartOfGrammar> parts_;
};

}  // namespace

void Postings::add(std::span<const NgramKey> keys, std::span<const Posting> postings,
                   unsigned num_threads) {
    constexpr std::size_t kLeastPostings = std::size_t{1} << 16;  // of a piece
    const std::size_t num_pieces =
        std::clamp<std::size_t>(postings.size() / kLeastPostings, 1, std::max(num_threads, 1u));
    parallel_for_all(num_pieces, num_threads, [&](std::size_t piece) {
        const std::size_t begin = postings.size() * piece / num_pieces;
        const std::size_t end = postings.size() * (piece + 1) / num_pieces;
        RunWriter run;
        CancellationPoint point;
        for (const Posting& posting : postings.subspan(begin, end - begin)) {
            point();
            run.add({keys[posting.term], posting.file, posting.count});
        }
        add(run.finish(spill));
    });
}

void Postings::add(Run&& run) {
    if (!run.chunks.empty()) {
        const std::lock_guard lock(mutex_);
        runs.push_back(std::move(run));
    }
}

void gather_postings(const Corpus& corpus, bool per_file, const Traversal& traversal,
                     Postings& postings) {
    Gatherer(corpus, per_file, traversal, postings).gather();
    gather_over_edges(corpus, per_file, traversal.num_threads, postings);
}

void gather_over_edges(const Corpus& corpus, bool per_file, unsigned num_threads,
                       Postings& postings) {
    if (corpus.ngram_length > 1) {
        const Traversal traversal{Direction::automatic, num_threads};
        Gatherer(corpus, per_file, traversal, postings).gather_over_edges();
    }
}

}  // namespace gompfs
