// Counts the terms of files, in either direction of traversal (TADOC section 4; G-TADOC section
// 4.2).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/cancellation.h"
#include "statistics/rule_graph.h"

namespace gompfs {

enum class Direction : std::uint8_t { automatic = 0, top_down = 1, bottom_up = 2 };

struct TermCount {
    std::uint32_t term;
    std::uint64_t count;
};

// For each rule, the counts of the terms in it and in all rules below it (TADOC's local tables).
struct LocalTables {
    // By node: the index of its first count. Tables of files are empty.
    std::vector<std::uint64_t> starts;
    std::vector<TermCount> counts;
};

// Decides whether bottom-up is faster (the choice of TADOC by the number of files). Top-down
// visits, for each file, every rule that the file uses. Bottom-up makes all local tables, then
// reads one table for each element of a file. Even if the caller asks for bottom_up, it is refused
// if tables may need more than kMaxLocalCounts entries, because their size can grow with the square
// of the grammar's size.
constexpr std::uint64_t kMaxLocalCounts = std::uint64_t{1} << 22;
bool choose_bottom_up(const RuleGraph& graph, Direction direction);

LocalTables build_local_tables(const RuleGraph& graph);

// Counts the terms of some files of a graph together. Each thread needs its own object.
class TermCounter {
  public:
    // Counts top-down if `tables` is null, else bottom-up.
    TermCounter(const RuleGraph& graph, const LocalTables* tables);

    // The terms of these files (indexes in graph.files) with their counts, unordered. Valid until
    // the next call.
    std::span<const TermCount> count(std::span<const std::uint32_t> files);

  private:
    void visit_top_down(std::span<const std::uint32_t> files);
    void add_weight(std::uint32_t node, std::uint64_t weight);
    std::uint32_t next_pending(std::uint32_t from) const;
    void read_tables(std::uint32_t node);
    void add(std::uint32_t term, std::uint64_t count);

    const RuleGraph& graph_;
    const LocalTables* tables_;
    std::vector<std::uint64_t> weights_;        // by node; 0 between calls
    std::vector<std::uint64_t> pending_;        // a bit per node that has a weight
    std::vector<std::uint64_t> pending_words_;  // a bit per element of pending_ that is not 0
    std::vector<std::uint64_t> counts_;         // by term; 0 between calls
    std::vector<std::uint32_t> seen_;           // terms with a count
    std::vector<TermCount> result_;
    CancellationPoint point_;
};

}  // namespace gompfs
