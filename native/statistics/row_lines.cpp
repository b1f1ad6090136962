// Writes rows as lines; see row_lines.h. Rows of several sources are few when they come here, so
// they are sorted instead of merged.
#include "statistics/row_lines.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "common/cancellation.h"
#include "statistics/index_report.h"
#include "statistics/posting_runs.h"
#include "statistics/sequence_count_report.h"

namespace gompfs {

Rows Rows::part(std::uint64_t begin, std::uint64_t end) const {
    if (begin > end || end > pairs.size() || counts.size() != pairs.size()) {
        throw std::invalid_argument("there are no such rows");
    }
    Rows rows = *this;
    rows.pairs = pairs.subspan(begin, end - begin);
    rows.counts = counts.subspan(begin, end - begin);
    if (begin != end && !low.empty()) {
        const std::uint64_t skipped = (pairs[begin] >> second_bits) - (pairs[0] >> second_bits);
        if (skipped >= low.size()) {
            throw std::invalid_argument("there are fewer keys than rows need");
        }
        rows.low = low.subspan(skipped);
        rows.high = high.empty() ? high : high.subspan(skipped);
    }
    return rows;
}

template <typename Take>
void Rows::for_each(std::uint64_t num_seconds, Take&& take) const {
    const std::uint64_t mask = (std::uint64_t{1} << second_bits) - 1;
    const std::uint64_t start = pairs.empty() ? 0 : pairs[0] >> second_bits;
    CancellationPoint point;
    for (std::size_t row = 0; row < pairs.size(); ++row) {
        point();
        const std::uint64_t first = pairs[row] >> second_bits, second = pairs[row] & mask;
        NgramKey key = first;
        if (second >= num_seconds || (!low.empty() && first - start >= low.size())) {
            throw std::invalid_argument("a row has a number that does not exist");
        }
        if (!low.empty()) {
            key = low[first - start];
            key |= high.empty() ? 0 : NgramKey{high[first - start]} << 64;
        }
        take(key, static_cast<std::uint32_t>(second), counts[row]);
    }
}

RowLines::RowLines(const Corpus& corpus, PostingsTask task, std::uint64_t top,
                   const FilesOfWords& scored)
    : corpus_(corpus),
      task_(task),
      top_(top == 0 ? std::numeric_limits<std::uint64_t>::max() : top),
      scored_(scored) {
    if (task == PostingsTask::tfidf && scored.by_word.size() != corpus.words.size()) {
        throw std::invalid_argument("there must be a number of files for each word");
    }
}

std::string RowLines::text(const std::vector<Rows>& sources) const {
    switch (task_) {
        case PostingsTask::term_vector:
        case PostingsTask::tfidf:
            return term_vectors(sources);
        case PostingsTask::sequence_count:
            return sources.empty() ? std::string() : counts(sources[0]);
        case PostingsTask::inverted_index:
        case PostingsTask::ranked_inverted_index:
            break;
    }
    return index(sources);
}

std::string RowLines::counts(const Rows& rows) const {
    std::string text;
    rows.for_each(std::numeric_limits<std::uint64_t>::max(),
                  [&](NgramKey key, std::uint32_t, std::uint64_t count) {
                      append_ngram_count(text, corpus_, key, count);
                  });
    return text;
}

std::string RowLines::index(const std::vector<Rows>& sources) const {
    IndexWriter writer(corpus_, task_ == PostingsTask::ranked_inverted_index, top_);
    if (sources.size() == 1) {
        sources[0].for_each(corpus_.files.size(),
                            [&](NgramKey key, std::uint32_t file, std::uint64_t count) {
                                writer.add(key, file, count);
                            });
        return writer.finish();
    }
    std::vector<KeyedPosting> postings;
    for (const Rows& rows : sources) {
        rows.for_each(corpus_.files.size(),
                      [&](NgramKey key, std::uint32_t file, std::uint64_t count) {
                          postings.push_back({key, file, count});
                      });
    }
    std::sort(postings.begin(), postings.end());
    for (const KeyedPosting& posting : postings) {
        writer.add(posting.key, posting.file, posting.count);
    }
    return writer.finish();
}

std::string RowLines::term_vectors(const std::vector<Rows>& sources) const {
    const TermVectorLines lines(corpus_, top_, task_ == PostingsTask::tfidf ? &scored_ : nullptr);
    std::vector<WordOfFile> words;
    for (const Rows& rows : sources) {
        rows.for_each(corpus_.words.size(),
                      [&](NgramKey file, std::uint32_t word, std::uint64_t count) {
                          if (file >= corpus_.files.size()) {
                              throw std::invalid_argument("there is no such file");
                          }
                          words.push_back({static_cast<std::uint32_t>(file), word, count});
                      });
    }
    const auto by_file = [](const WordOfFile& left, const WordOfFile& right) {
        return left.file < right.file;
    };
    if (sources.size() > 1) {
        std::stable_sort(words.begin(), words.end(), by_file);  // a file is in one source
    }
    std::string text;
    for (auto first = words.begin(); first != words.end();) {
        const auto end = std::upper_bound(first, words.end(), *first, by_file);
        lines.append(text, std::span<WordOfFile>(first, end));
        first = end;
    }
    return text;
}

}  // namespace gompfs
