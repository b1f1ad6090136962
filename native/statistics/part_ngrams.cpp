// Finds n-grams in rules and files; see part_ngrams.h. Rules are read from the last one down, so
// that the head and the tail of a rule are known before it is used.
#include "statistics/part_ngrams.h"

#include <algorithm>
#include <stdexcept>

#include "common/cancellation.h"
#include "statistics/corpus.h"

namespace gompfs {
namespace {

// No text has rules whose heads and tails take more: a part has some million words at most.
constexpr std::size_t kMaxEnds = std::size_t{1} << 26;

}  // namespace

PartNgrams::PartNgrams(const NgramSet& set, const Part& part, std::span<const std::uint32_t> words)
    : set_(set),
      part_(part),
      words_(words),
      capacity_(set.length() - 1),
      window_(set.length()),
      rule_ends_(part.rules.size()),
      rule_hits_(part.rules.size()) {
    read_rules();
}

void PartNgrams::add_to_head(std::uint32_t word) {
    if (!is_cut_) {
        head_.push_back(word);
        is_cut_ = head_.size() == capacity_;
    }
}

void PartNgrams::read_word(std::uint32_t word) {
    if (word == kUnknown) {
        window_.clear();
        is_cut_ = true;
        return;
    }
    add_to_head(word);
    if (window_.push(word, set_.hash_of_word(word))) {
        const std::uint32_t ngram = set_.find(window_);
        if (ngram != kUnknown) {
            hits_.push_back(ngram);
        }
    }
}

void PartNgrams::read(Symbol symbol) {
    if (!is_rule(symbol)) {
        read_word(words_[symbol]);
        return;
    }
    const RuleEnds& ends = ends_of(symbol);
    has_ngrams_ = has_ngrams_ || ends.has_ngrams;
    const std::uint32_t* next = ends_.data() + ends.start;
    for (const std::uint32_t* const end = next + ends.head_size; next != end; ++next) {
        read_word(*next);
    }
    if (ends.is_cut) {
        is_cut_ = true;
        window_.clear();
        for (const std::uint32_t* const end = next + ends.tail_size; next != end; ++next) {
            window_.push(*next, set_.hash_of_word(*next));
        }
    }
}

// Reads the elements of a rule or file, none of which is a splitter. Returns its own n-grams.
PartNgrams::Hits PartNgrams::read_node(std::uint64_t begin, std::uint64_t end) {
    window_.clear();
    head_.clear();
    is_cut_ = capacity_ == 0;
    has_ngrams_ = false;
    Hits hits{hits_.size(), 0};
    for (std::uint64_t at = begin; at < end; ++at) {
        read(part_.rules.symbols[at]);
    }
    hits.end = hits_.size();
    has_ngrams_ = has_ngrams_ || hits.begin != hits.end;
    return hits;
}

// Appends the last words of the node that was read.
void PartNgrams::append_tail(std::vector<std::uint32_t>& words) const {
    const std::size_t size = is_cut_ ? std::min<std::size_t>(window_.size(), capacity_) : 0;
    for (std::size_t distance = size; distance-- > 0;) {
        words.push_back(window_.from_end(static_cast<unsigned>(distance)));
    }
}

NodeEnds PartNgrams::ends_of_node() const {
    NodeEnds ends{head_, {}, is_cut_};
    append_tail(ends.tail);
    return ends;
}

void PartNgrams::read_rules() {
    CancellationPoint point;
    for (std::uint32_t rule = part_.rules.size(); --rule > 0;) {
        point();
        rule_hits_[rule] = read_node(part_.rules.starts[rule], part_.rules.starts[rule + 1]);
        const std::size_t start = ends_.size();
        ends_.insert(ends_.end(), head_.begin(), head_.end());
        append_tail(ends_);
        rule_ends_[rule] = {start, static_cast<std::uint8_t>(head_.size()),
                            static_cast<std::uint8_t>(ends_.size() - start - head_.size()), is_cut_,
                            has_ngrams_};
        if (ends_.size() > kMaxEnds) {
            throw std::invalid_argument("its rules are too long for n-grams of this length");
        }
    }
}

RuleGraph PartNgrams::graph(std::span<const std::uint32_t> files) {
    RuleGraph graph;
    graph.files.assign(files.begin(), files.end());
    const std::vector<std::uint64_t>& starts = part_.rules.starts;
    const Symbol* const symbols = part_.rules.symbols.data();
    CancellationPoint point;
    std::uint64_t begin = 0;
    for (std::size_t file = 0; file < files.size(); ++file) {
        point();
        const auto end = static_cast<std::uint64_t>(
            std::find(symbols + begin, symbols + starts[1], kSplitter) - symbols);
        const Hits hits = read_node(begin, end);
        if (file == 0) {
            first_ends_ = ends_of_node();
        }
        if (file + 1 == files.size()) {
            last_ends_ = ends_of_node();
        }
        add_node(graph, files[file] == kLeftOut ? Hits{} : hits, begin,
                 files[file] == kLeftOut || !has_ngrams_ ? begin : end);
        begin = end + 1;
    }
    for (std::uint32_t rule = 1; rule < part_.rules.size(); ++rule) {
        point();
        const std::uint64_t end = rule_ends_[rule].has_ngrams ? starts[rule + 1] : starts[rule];
        add_node(graph, rule_hits_[rule], starts[rule], end);
    }
    graph.term_starts.push_back(graph.terms.size());
    graph.child_starts.push_back(graph.children.size());
    number_terms(graph);
    return graph;
}

// Adds the n-grams of a node, and the rules among its elements that have n-grams.
void PartNgrams::add_node(RuleGraph& graph, Hits hits, std::uint64_t begin,
                          std::uint64_t end) const {
    graph.term_starts.push_back(graph.terms.size());
    graph.child_starts.push_back(graph.children.size());
    for (std::uint64_t hit = hits.begin; hit < hits.end; ++hit) {
        graph.terms.push_back(hits_[hit]);
    }
    for (std::uint64_t at = begin; at < end; ++at) {
        const Symbol symbol = part_.rules.symbols[at];
        if (is_rule(symbol) && ends_of(symbol).has_ngrams) {
            // Rule nodes follow the file nodes; rule 0 is not a node.
            const auto rule = static_cast<std::uint32_t>(symbol - words_.size());
            graph.children.push_back(graph.num_files() + rule - 1);
        }
    }
}

// Terms were numbers of n-grams, and become indexes of keys.
void PartNgrams::number_terms(RuleGraph& graph) const {
    std::vector<std::uint32_t> ngrams = graph.terms;
    std::sort(ngrams.begin(), ngrams.end());
    ngrams.erase(std::unique(ngrams.begin(), ngrams.end()), ngrams.end());
    graph.keys.assign(ngrams.begin(), ngrams.end());
    for (std::uint32_t& term : graph.terms) {
        const auto found = std::lower_bound(ngrams.begin(), ngrams.end(), term);
        term = static_cast<std::uint32_t>(found - ngrams.begin());
    }
}

}  // namespace gompfs
