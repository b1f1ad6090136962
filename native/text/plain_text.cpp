// Cuts text into words; see plain_text.h.
#include "text/plain_text.h"

#include <algorithm>
#include <utility>

#include "text/segment_grammar.h"

namespace gompfs {
namespace {

constexpr std::size_t kPartSize = std::size_t{8} << 20;

PartWords cut(const CollectedPart& part, const Tokenizer& tokenizer) {
    std::vector<WeightedRange> ranges;
    std::uint64_t begin = 0;
    for (const std::uint64_t end : part.file_ends) {
        ranges.push_back({begin, end - begin, 1});
        begin = end;
    }
    if (begin != part.text.size()) {
        ranges.push_back({begin, part.text.size() - begin, 1});
    }
    return words_of_text(part.text, ranges, tokenizer);
}

}  // namespace

PlainText::PlainText(Tokenizer tokenizer, unsigned num_threads)
    : num_threads_(std::max(num_threads, 1u)),
      tokenizer_(std::move(tokenizer)),
      collector_(tokenizer_, kPartSize, kPartSize,
                 [this](CollectedPart part) { cutting_.push(std::move(part), 1); }),
      cutting_(num_threads_, std::size_t{1}, [this] {
          return [this](const CollectedPart& part) { return cut(part, tokenizer_); };
      }) {}

Grammar PlainText::take() {
    if (!collector_.is_in_file()) {
        collector_.flush();
    }
    std::vector<PartWords> words = cutting_.pop_all();
    const std::size_t first = std::exchange(num_taken_, num_taken_ + words.size());
    std::vector<TextExtent> extents;
    for (const FilePiece& piece : collector_.take_pieces()) {
        pieces_.push_back(piece);
    }
    // Pieces of files that have ended may be in a part that is still being collected.
    std::size_t next = 0;
    for (; next < pieces_.size() && pieces_[next].part < num_taken_; ++next) {
        const FilePiece& piece = pieces_[next];
        extents.push_back({static_cast<std::uint32_t>(piece.part - first), piece.offset, piece.size,
                           inos_[piece.file], last_file_ == piece.file});
        last_file_ = piece.file;
    }
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(next));
    return grammar_of_words(std::move(words), extents, tokenizer_.rule(), num_threads_);
}

}  // namespace gompfs
