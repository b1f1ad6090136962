// Implements both directions of traversal; see counting.h.
//
// Top-down visits nodes in ascending order, starting from the files; a two-level bitmap of nodes
// with a weight (pending_) finds the next node without visiting all others. Bottom-up builds the
// tables from the last rule up, so that the tables of a rule's children exist before its own.
#include "statistics/counting.h"

#include <algorithm>
#include <bit>

namespace gompfs {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

// The most counts that the table of each rule can have; 0 for files.
std::vector<std::uint64_t> bound_tables(const RuleGraph& graph) {
    std::vector<std::uint64_t> bounds(graph.num_nodes());
    for (std::uint32_t node = graph.num_nodes(); node-- > graph.num_files();) {
        std::uint64_t bound = graph.term_starts[node + 1] - graph.term_starts[node];
        for (std::uint64_t at = graph.child_starts[node]; at < graph.child_starts[node + 1]; ++at) {
            bound = std::min<std::uint64_t>(bound + bounds[graph.children[at]], graph.num_terms());
        }
        bounds[node] = std::min<std::uint64_t>(bound, graph.num_terms());
    }
    return bounds;
}

}  // namespace

bool choose_bottom_up(const RuleGraph& graph, Direction direction) {
    if (direction == Direction::top_down) {
        return false;
    }
    const std::vector<std::uint64_t> bounds = bound_tables(graph);
    std::uint64_t table_size = 0, read_by_files = 0;
    for (const std::uint64_t bound : bounds) {
        table_size += bound;
    }
    if (table_size > kMaxLocalCounts) {
        return false;
    }
    std::uint64_t num_counted = 0;
    for (std::uint32_t file = 0; file < graph.num_files(); ++file) {
        num_counted += graph.files[file] != kLeftOut;
        for (std::uint64_t at = graph.child_starts[file]; at < graph.child_starts[file + 1]; ++at) {
            read_by_files += bounds[graph.children[at]];
        }
    }
    // A file visits no more than all rules, and no more than it would read from tables.
    const std::uint64_t size_of_rules = graph.terms.size() + graph.children.size();
    return direction == Direction::bottom_up ||
           table_size + read_by_files < std::min(num_counted * size_of_rules, 4 * read_by_files);
}

LocalTables build_local_tables(const RuleGraph& graph) {
    LocalTables tables;
    tables.starts.resize(graph.num_nodes() + std::size_t{1});
    std::vector<std::uint64_t> counts(graph.num_terms());
    std::vector<std::uint32_t> seen;
    const auto add = [&](std::uint32_t term, std::uint64_t count) {
        if (counts[term] == 0) {
            seen.push_back(term);
        }
        counts[term] += count;
    };
    // From the last rule on, so the tables are stored in descending order of their rules: the table
    // of a node begins where that of the next node ends.
    CancellationPoint point;
    for (std::uint32_t node = graph.num_nodes(); node-- > graph.num_files();) {
        point();
        for (std::uint64_t at = graph.term_starts[node]; at < graph.term_starts[node + 1]; ++at) {
            add(graph.terms[at], 1);
        }
        for (std::uint64_t at = graph.child_starts[node]; at < graph.child_starts[node + 1]; ++at) {
            const std::uint32_t child = graph.children[at];
            for (std::uint64_t at = tables.starts[child + 1]; at < tables.starts[child]; ++at) {
                add(tables.counts[at].term, tables.counts[at].count);
            }
        }
        for (const std::uint32_t term : seen) {
            tables.counts.push_back({term, counts[term]});
            counts[term] = 0;
        }
        seen.clear();
        tables.starts[node] = tables.counts.size();
    }
    return tables;
}

TermCounter::TermCounter(const RuleGraph& graph, const LocalTables* tables)
    : graph_(graph), tables_(tables), counts_(graph.num_terms()) {
    if (tables == nullptr) {
        weights_.resize(graph.num_nodes());
        pending_.resize(graph.num_nodes() / 64 + 1);
        pending_words_.resize(pending_.size() / 64 + 1);
    }
}

std::span<const TermCount> TermCounter::count(std::span<const std::uint32_t> files) {
    if (tables_ == nullptr) {
        visit_top_down(files);
    } else {
        for (const std::uint32_t file : files) {
            read_tables(file);
        }
    }
    result_.clear();
    for (const std::uint32_t term : seen_) {
        result_.push_back({term, counts_[term]});
        counts_[term] = 0;
    }
    seen_.clear();
    return result_;
}

// Weights flow from the files down. A rule is visited after all rules that use it.
void TermCounter::visit_top_down(std::span<const std::uint32_t> files) {
    for (const std::uint32_t file : files) {
        add_weight(file, 1);
    }
    for (std::uint32_t node = 0; (node = next_pending(node)) != kNone; ++node) {
        point_();
        const std::uint64_t weight = weights_[node];
        weights_[node] = 0;
        pending_[node / 64] &= ~(std::uint64_t{1} << node % 64);
        for (std::uint64_t at = graph_.term_starts[node]; at < graph_.term_starts[node + 1]; ++at) {
            add(graph_.terms[at], weight);
        }
        for (std::uint64_t at = graph_.child_starts[node]; at < graph_.child_starts[node + 1];
             ++at) {
            add_weight(graph_.children[at], weight);
        }
    }
    std::fill(pending_words_.begin(), pending_words_.end(), 0);
}

void TermCounter::add_weight(std::uint32_t node, std::uint64_t weight) {
    weights_[node] += weight;
    pending_[node / 64] |= std::uint64_t{1} << node % 64;
    pending_words_[node / 4096] |= std::uint64_t{1} << node / 64 % 64;
}

// The first node with a weight at or after `from`.
std::uint32_t TermCounter::next_pending(std::uint32_t from) const {
    std::size_t word = from / 64;
    std::uint64_t bits = word < pending_.size() ? pending_[word] >> from % 64 << from % 64 : 0;
    while (bits == 0) {
        ++word;
        std::size_t group = word / 64;
        if (group >= pending_words_.size()) {
            return kNone;
        }
        std::uint64_t words = pending_words_[group] >> word % 64 << word % 64;
        while (words == 0) {
            if (++group == pending_words_.size()) {
                return kNone;
            }
            words = pending_words_[group];
        }
        word = group * 64 + std::countr_zero(words);
        bits = pending_[word];
    }
    return static_cast<std::uint32_t>(word * 64 + std::countr_zero(bits));
}

void TermCounter::read_tables(std::uint32_t node) {
    for (std::uint64_t at = graph_.term_starts[node]; at < graph_.term_starts[node + 1]; ++at) {
        add(graph_.terms[at], 1);
    }
    for (std::uint64_t at = graph_.child_starts[node]; at < graph_.child_starts[node + 1]; ++at) {
        point_();
        const std::uint32_t child = graph_.children[at];
        for (std::uint64_t at = tables_->starts[child + 1]; at < tables_->starts[child]; ++at) {
            add(tables_->counts[at].term, tables_->counts[at].count);
        }
    }
}

void TermCounter::add(std::uint32_t term, std::uint64_t count) {
    if (counts_[term] == 0) {
        seen_.push_back(term);
    }
    counts_[term] += count;
}

}  // namespace gompfs
