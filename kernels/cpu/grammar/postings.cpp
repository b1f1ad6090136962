#include "grammar/postings.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "grammar/sequential.h"

namespace gompfs {
namespace {

struct PartPlace {
    std::size_t grammar;
    const Part* part;
};

std::vector<PartPlace> parts_of(const Corpus& corpus) {
    std::vector<PartPlace> parts;
    for (std::size_t grammar = 0; grammar < corpus.grammars.size(); ++grammar) {
        for (const Part& part : corpus.grammars[grammar]->parts) {
            parts.push_back({grammar, &part});
        }
    }
    return parts;
}

// A file that reaches over parts has n-grams there that no part knows: they are read from the words
// at the ends of the parts.
struct PartEdge {
    bool continues = false;
    std::uint64_t first_ino = 0, last_ino = 0;
    bool is_one_file = true;
    WordBuffer head, tail;  // of the first file, of the last
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

// The postings of keys in any order, each with its file.
Run sorted_run(std::vector<std::pair<NgramKey, std::uint32_t>>& found) {
    std::sort(found.begin(), found.end());
    auto keys = std::make_shared<std::vector<NgramKey>>();
    Run run;
    for (const auto& [key, file] : found) {
        if (keys->empty() || keys->back() != key) {
            keys->push_back(key);
        }
        const auto term = static_cast<std::uint32_t>(keys->size() - 1);
        if (run.postings.empty() || run.postings.back().term != term ||
            run.postings.back().file != file) {
            run.postings.push_back({term, file, 0});
        }
        ++run.postings.back().count;
    }
    run.keys = std::move(keys);
    return run;
}

// `edges` are those of all parts in order.
Run count_over_edges(const Corpus& corpus, bool per_file, const std::vector<PartEdge>& edges) {
    std::vector<std::pair<NgramKey, std::uint32_t>> found;
    const WordReader reader(corpus);
    WordBuffer tail;
    std::uint64_t ino = 0;
    for (std::size_t index = 0; index < edges.size() && corpus.n > 1; ++index) {
        const PartEdge& edge = edges[index];
        if (!edge.continues || edge.first_ino != ino) {
            tail = {};
        }
        const std::uint32_t file = corpus.file_number(edge.first_ino);
        for (std::uint32_t word = 0; word < edge.head.size; ++word) {
            reader.read_word(edge.head.words[word], tail, [&](NgramKey key) {
                if (file != kLeftOut) {
                    found.emplace_back(key, per_file ? file : 0);
                }
            });
        }
        if (!edge.is_one_file || edge.tail.size == corpus.n - 1) {
            tail = edge.tail;
        }
        ino = edge.last_ino;
    }
    return sorted_run(found);
}

class Gatherer {
  public:
    Gatherer(const Corpus& corpus, bool per_file, const Traversal& traversal, MemoryBudget& budget)
        : corpus_(corpus),
          per_file_(per_file),
          traversal_(traversal),
          budget_(budget),
          parts_(parts_of(corpus)) {
        edges_.resize(parts_.size());
        runs_of_parts_.resize(parts_.size());
    }

    std::vector<Run> gather() {
        const unsigned num_threads = traversal_.num_threads;
        // Where parts are fewer than threads, threads share the files of each.
        const bool inside = parts_.size() < num_threads;
        parallel_for(parts_.size(), num_threads,
                     [&](std::size_t part) { count_part(part, inside ? num_threads : 1); });
        std::vector<Run> runs;
        for (std::vector<Run>& of_part : runs_of_parts_) {
            std::move(of_part.begin(), of_part.end(), std::back_inserter(runs));
        }
        runs.push_back(count_over_edges(corpus_, per_file_, edges_));
        std::erase_if(runs, [](const Run& run) { return run.postings.empty(); });
        return runs;
    }

  private:
    void count_part(std::size_t index, unsigned num_threads) {
        const auto& [grammar, part] = parts_[index];
        const bool is_counted = std::any_of(part->inos.begin(), part->inos.end(), [&](auto ino) {
            return corpus_.file_number(ino) != kLeftOut;
        });
        if (!is_counted || budget_.is_exceeded()) {
            return;
        }
        const NgramReader reader(corpus_, grammar, *part);
        edges_[index] = read_edge(reader, *part);
        const RuleGraph graph = build_rule_graph(corpus_, reader, *part);
        if (!budget_.take(graph.keys.size() * sizeof(NgramKey))) {
            return;
        }
        std::optional<LocalTables> tables;
        if (choose_bottom_up(graph, per_file_ || traversal_.direction != Direction::automatic
                                        ? traversal_.direction
                                        : Direction::top_down)) {
            tables = build_local_tables(graph);
        }
        count_graph(graph, tables ? &*tables : nullptr, num_threads, runs_of_parts_[index]);
    }

    void count_graph(const RuleGraph& graph, const LocalTables* tables, unsigned num_threads,
                     std::vector<Run>& runs) {
        const auto keys = std::make_shared<const std::vector<NgramKey>>(graph.keys);
        std::vector<std::uint32_t> files;
        for (std::uint32_t file = 0; file < graph.num_files(); ++file) {
            if (graph.files[file] != kLeftOut) {
                files.push_back(file);
            }
        }
        const std::size_t num_tasks = std::min<std::size_t>(num_threads, files.size());
        runs.resize(num_tasks);
        parallel_for(num_tasks, num_threads, [&](std::size_t task) {
            const std::size_t begin = files.size() * task / num_tasks;
            const std::size_t end = files.size() * (task + 1) / num_tasks;
            runs[task].keys = keys;
            count_files(graph, tables, {files.data() + begin, end - begin}, runs[task].postings);
        });
    }

    void count_files(const RuleGraph& graph, const LocalTables* tables,
                     std::span<const std::uint32_t> files, std::vector<Posting>& postings) {
        TermCounter counter(graph, tables);
        const std::size_t step = per_file_ ? 1 : files.size();
        for (std::size_t first = 0; first < files.size(); first += step) {
            const std::uint32_t number = per_file_ ? graph.files[files[first]] : 0;
            const auto counts = counter.count(files.subspan(first, step));
            if (!budget_.take(counts.size() * sizeof(Posting))) {
                return;
            }
            for (const TermCount& count : counts) {
                postings.push_back({count.term, number, count.count});
            }
        }
        sort_postings(postings, graph.num_terms());
    }

    // By (term, file). A file may come more than once; what it has then is added up by the merger.
    static void sort_postings(std::vector<Posting>& postings, std::uint32_t num_terms) {
        std::stable_sort(
            postings.begin(), postings.end(),
            [](const Posting& left, const Posting& right) { return left.file < right.file; });
        std::vector<std::uint64_t> places(num_terms + std::size_t{1});
        for (const Posting& posting : postings) {
            ++places[posting.term + 1];
        }
        std::partial_sum(places.begin(), places.end(), places.begin());
        std::vector<Posting> sorted(postings.size());
        for (const Posting& posting : postings) {
            sorted[places[posting.term]++] = posting;
        }
        postings = std::move(sorted);
    }

    const Corpus& corpus_;
    const bool per_file_;
    const Traversal& traversal_;
    MemoryBudget& budget_;
    const std::vector<PartPlace> parts_;
    std::vector<PartEdge> edges_;
    std::vector<std::vector<Run>> runs_of_parts_;
};

}  // namespace

void MemoryBudget::check() const {
    if (is_exceeded()) {
        throw std::length_error("they take more memory than they may");
    }
}

std::vector<Run> gather_postings(const Corpus& corpus, bool per_file, const Traversal& traversal,
                                 MemoryBudget& budget) {
    std::vector<Run> runs = traversal.sequential
                                ? count_sequentially(corpus, per_file, budget)
                                : Gatherer(corpus, per_file, traversal, budget).gather();
    budget.check();
    return runs;
}

Run gather_over_edges(const Corpus& corpus, bool per_file, unsigned num_threads) {
    const std::vector<PartPlace> parts = parts_of(corpus);
    std::vector<PartEdge> edges(parts.size());
    const auto goes_on = [&](std::size_t index) {
        return index < parts.size() && parts[index].part->continues;
    };
    parallel_for(corpus.n > 1 ? parts.size() : 0, num_threads, [&](std::size_t index) {
        if (goes_on(index) || goes_on(index + 1)) {
            const auto& [grammar, part] = parts[index];
            edges[index] = read_edge(NgramReader(corpus, grammar, *part), *part);
        }
    });
    return count_over_edges(corpus, per_file, edges);
}

RunMerger::RunMerger(const std::vector<Run>& runs, unsigned max_ranges) : runs_(runs) {
    constexpr std::size_t kMinPostingsOfRange = 4096;
    const Run* longest = nullptr;
    for (const Run& run : runs) {
        if (longest == nullptr || run.postings.size() > longest->postings.size()) {
            longest = &run;
        }
    }
    if (longest == nullptr) {
        return;
    }
    const std::size_t size = longest->postings.size();
    const std::size_t num_ranges = std::min<std::size_t>(max_ranges, size / kMinPostingsOfRange);
    for (std::size_t range = 1; range < num_ranges; ++range) {
        const NgramKey cut = (*longest->keys)[longest->postings[size * range / num_ranges].term];
        if (cuts_.empty() || cuts_.back() < cut) {
            cuts_.push_back(cut);
        }
    }
}

std::vector<RunMerger::Cursor> RunMerger::cursors(std::size_t range) const {
    std::vector<Cursor> heap;
    for (const Run& run : runs_) {
        const std::vector<NgramKey>& keys = *run.keys;
        const auto place = [&](std::size_t cut) {
            return std::partition_point(
                run.postings.data(), run.postings.data() + run.postings.size(),
                [&](const Posting& posting) { return keys[posting.term] < cuts_[cut]; });
        };
        const Cursor cursor{
            range == 0 ? run.postings.data() : place(range - 1),
            range == cuts_.size() ? run.postings.data() + run.postings.size() : place(range),
            keys.data()};
        if (cursor.at != cursor.end) {
            heap.push_back(cursor);
        }
    }
    std::make_heap(heap.begin(), heap.end(), std::greater<>());
    return heap;
}

void RunMerger::sift_down(std::vector<Cursor>& heap) {
    if (heap.front().at == heap.front().end) {
        heap.front() = heap.back();
        heap.pop_back();
    }
    for (std::size_t at = 0, child; (child = 2 * at + 1) < heap.size(); at = child) {
        if (child + 1 < heap.size() && heap[child] > heap[child + 1]) {
            ++child;
        }
        if (!(heap[at] > heap[child])) {
            return;
        }
        std::swap(heap[at], heap[child]);
    }
}

}  // namespace gompfs
