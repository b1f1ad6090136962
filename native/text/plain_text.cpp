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
    const std::vector<FilePiece>& pieces = collector_.pieces();
    // Pieces of files that have ended may be in a part that is still being collected.
    for (; next_piece_ < pieces.size() && pieces[next_piece_].part < num_taken_; ++next_piece_) {
        const FilePiece& piece = pieces[next_piece_];
        const bool continues = next_piece_ != 0 && pieces[next_piece_ - 1].file == piece.file;
        extents.push_back({static_cast<std::uint32_t>(piece.part - first), piece.offset, piece.size,
                           inos_[piece.file], continues});
    }
    return grammar_of_words(std::move(words), extents, tokenizer_.rule(), num_threads_);
}

}  // namespace gompfs
