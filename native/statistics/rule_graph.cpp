// Builds the graph of a part; see rule_graph.h. All occurrences of n-grams are listed with their
// keys, radix-sorted by key, and numbered.
#include "statistics/rule_graph.h"

#include <array>
#include <numeric>

#include "common/cancellation.h"

namespace gompfs {
namespace {

struct Occurrence {
    NgramKey key;
    std::uint32_t index;  // index in `terms`
};

// Sorts by key with a stable radix sort, lowest digit first.
void sort_by_key(std::vector<Occurrence>& occurrences, unsigned key_bits) {
    constexpr unsigned kDigitBits = 11;
    std::vector<Occurrence> sorted(occurrences.size());
    for (unsigned shift = 0; shift < key_bits; shift += kDigitBits) {
        throw_if_cancelled();
        std::array<std::uint32_t, (1 << kDigitBits) + 1> offsets{};
        const auto digit = [shift](NgramKey key) {
            return static_cast<std::uint32_t>(key >> shift) & ((1 << kDigitBits) - 1);
        };
        for (const Occurrence& occurrence : occurrences) {
            ++offsets[digit(occurrence.key) + 1];
        }
        std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
        for (const Occurrence& occurrence : occurrences) {
            sorted[offsets[digit(occurrence.key)]++] = occurrence;
        }
        occurrences.swap(sorted);
    }
}

class GraphBuilder {
  public:
    GraphBuilder(const Corpus& corpus, const NgramReader& reader, const Part& part)
        : corpus_(corpus), reader_(reader), part_(part) {}

    RuleGraph build() {
        add_files();
        const std::vector<std::uint64_t>& starts = part_.rules.starts;
        for (std::uint32_t rule = 1; rule < part_.rules.size(); ++rule) {
            add_node(starts[rule], starts[rule + 1]);
        }
        end_node();
        number_terms();
        return std::move(graph_);
    }

  private:
    void end_node() {
        graph_.term_starts.push_back(occurrences_.size());
        graph_.child_starts.push_back(graph_.children.size());
    }

    void add_files() {
        std::uint64_t start = 0;
        for (const std::uint64_t ino : part_.inos) {
            std::uint64_t end = start;
            while (part_.rules.symbols[end] != kSplitter) {
                ++end;
            }
            graph_.files.push_back(corpus_.file_number(ino));
            add_node(start, graph_.files.back() == kLeftOut ? start : end);
            start = end + 1;
        }
    }

    void add_node(std::uint64_t begin, std::uint64_t end) {
        end_node();
        const auto num_words = static_cast<std::uint32_t>(part_.words.size());
        WordBuffer tail;
        for (std::uint64_t at = begin; at < end; ++at) {
            const Symbol symbol = part_.rules.symbols[at];
            point_();
            reader_.read(symbol, tail, [&](NgramKey key) {
                occurrences_.push_back({key, static_cast<std::uint32_t>(occurrences_.size())});
            });
            if (symbol >= num_words) {
                // Rule nodes follow the file nodes; rule 0 is not a node.
                graph_.children.push_back(num_files() + (symbol - num_words) - 1);
            }
        }
    }

    std::uint32_t num_files() const { return static_cast<std::uint32_t>(part_.inos.size()); }

    void number_terms() {
        sort_by_key(occurrences_, corpus_.ngram_length * corpus_.bits);
        graph_.terms.resize(occurrences_.size());
        for (const Occurrence& occurrence : occurrences_) {
            if (graph_.keys.empty() || graph_.keys.back() != occurrence.key) {
                graph_.keys.push_back(occurrence.key);
            }
            graph_.terms[occurrence.index] = graph_.num_terms() - 1;
        }
    }

    const Corpus& corpus_;
    const NgramReader& reader_;
    const Part& part_;
    RuleGraph graph_;
    std::vector<Occurrence> occurrences_;
    CancellationPoint point_;
};

}  // namespace

RuleGraph build_rule_graph(const Corpus& corpus, const NgramReader& reader, const Part& part) {
    return GraphBuilder(corpus, reader, part).build();
}

}  // namespace gompfs
