// Scans parts; see grammar_scan.h.
#include "search/grammar/grammar_scan.h"

#include <algorithm>
#include <utility>

#include "codec/block.h"
#include "common/failures.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kMaxPartsAtOnce = 16;  // that a thread takes
constexpr std::uint64_t kMaxPartSize = 1 << 30;
constexpr std::size_t kMaxPieces = 1 << 12;  // of a file
constexpr std::size_t kSampleSize = 64;      // parts
// If fewer of them are idle than one in so many, no part is looked at before its lines are made.
constexpr std::size_t kFewIdle = 4;

}  // namespace

GrammarScan::GrammarScan(LineAutomaton automaton, WordRule rule, PartHeads& heads,
                         const BlockSource* source, std::uint64_t block_size,
                         const Options& options)
    : automaton_(std::move(automaton)),
      rule_(rule),
      heads_(heads),
      source_(source),
      block_size_(block_size),
      options_(options) {
    for (std::size_t segment = 0; segment < heads.segments().size(); ++segment) {
        const SegmentHeads& stored = heads.segments()[segment];
        for (std::size_t part = 0; part < stored.first_blocks.size(); ++part) {
            parts_.push_back({.begin = stored.first_blocks[part] * block_size,
                              .segment = segment,
                              .number = part,
                              .first_state = automaton_.line_start,
                              .last_state = LineAutomaton::kStart,
                              .pieces = {}});
        }
    }
}

// The index of the part that a byte of the stream is in; parts_.size() if it is in none.
std::size_t GrammarScan::part_at(std::uint64_t offset) const {
    const auto after = std::upper_bound(
        parts_.begin(), parts_.end(), offset,
        [](std::uint64_t wanted, const Part& each) { return wanted < each.begin; });
    const auto index = static_cast<std::size_t>(after - parts_.begin());
    return index == 0 || after == parts_.end() ? parts_.size() : index - 1;
}

// The piece that a file is. Nothing if it is none, or more than one.
std::optional<GrammarScan::Piece> GrammarScan::only_piece_of(const LayoutView& file) const {
    if (file.extents.size() != 1 || file.extents[0].file_offset != 0 ||
        file.extents[0].size != file.size) {
        return std::nullopt;
    }
    const std::uint64_t begin = file.extents[0].stream_offset, end = begin + file.size;
    const std::size_t part = part_at(begin);
    return part < parts_.size() && end <= parts_[part + 1].begin
               ? std::optional(Piece{part, begin, end})
               : std::nullopt;
}

// The pieces that a file consists of. Nothing if it has holes, is not all in parts that are known
// here, or has extents that reach past its end.
std::optional<std::vector<GrammarScan::Piece>> GrammarScan::pieces_of(
    const LayoutView& file) const {
    throw_if_cancelled();
    std::vector<Piece> pieces;
    std::uint64_t size = 0;
    for (const FileExtent& extent : file.extents) {
        const std::uint64_t end = extent.stream_offset + extent.size;
        std::uint64_t at = extent.stream_offset;
        if (extent.file_offset != size) {
            return std::nullopt;
        }
        size += extent.size;
        for (std::size_t part = part_at(at); at < end; ++part) {
            if (part + 1 >= parts_.size() || pieces.size() == kMaxPieces) {
                return std::nullopt;
            }
            const std::uint64_t piece_end = std::min(end, parts_[part + 1].begin);
            pieces.push_back({part, at, piece_end});
            at = piece_end;
        }
    }
    return size == file.size ? std::optional(std::move(pieces)) : std::nullopt;
}

// Whether a piece begins its part, and the one before is in the last block of the part before, of
// the same segment.
bool GrammarScan::follows(const Piece& piece, const Piece& before) const {
    return piece.part == before.part + 1 && piece.begin == parts_[piece.part].begin &&
           piece.begin - before.end < block_size_ &&
           parts_[piece.part].segment == parts_[before.part].segment;
}

void GrammarScan::mark_needed(const LayoutView& file) {
    throw_if_cancelled();
    for (const FileExtent& extent : file.extents) {
        for (std::size_t part = part_at(extent.stream_offset);
             part < parts_.size() && parts_[part].begin < extent.stream_offset + extent.size;
             ++part) {
            const auto& sizes = heads_.segments()[parts_[part].segment].head_sizes;
            if (parts_[part].number < sizes.size() && sizes[parts_[part].number] != 0) {
                parts_[part].kind = Part::Kind::unknown;
            }
        }
    }
}

// Whether enough parts of a sample are idle for all parts to be looked at before lines are made.
bool GrammarScan::may_skip_many(unsigned num_threads) {
    std::vector<std::size_t> needed;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
        if (parts_[part].kind == Part::Kind::unknown) {
            needed.push_back(part);
        }
    }
    if (options_.goal == Goal::count || source_ == nullptr || needed.size() < 4 * kSampleSize) {
        return true;
    }
    std::vector<std::size_t> sample;
    for (std::size_t index = 0; index < kSampleSize; ++index) {
        sample.push_back(needed[index * needed.size() / kSampleSize]);
    }
    scan_again(sample, num_threads);
    const auto num_idle = std::count_if(sample.begin(), sample.end(), [&](std::size_t part) {
        return parts_[part].kind == Part::Kind::idle;
    });
    return static_cast<std::size_t>(num_idle) >= kSampleSize / kFewIdle;
}

void GrammarScan::scan_needed(unsigned num_threads) {
    for (std::size_t segment = 0; segment < heads_.segments().size(); ++segment) {
        tokens_.emplace_back(automaton_, heads_.words(segment), rule_, num_threads);
    }
    if (!may_skip_many(num_threads)) {
        return;
    }
    const std::size_t at_once = std::clamp<std::size_t>(
        parts_.size() / (8 * std::max(num_threads, 1u)), 1, kMaxPartsAtOnce);
    parallel_for_all((parts_.size() + at_once - 1) / at_once, num_threads, [&](std::size_t index) {
        auto worker = take_worker();
        const std::size_t end = std::min((index + 1) * at_once, parts_.size());
        for (std::size_t part = index * at_once; part < end;) {
            std::size_t run_end = part;
            while (run_end < end && parts_[run_end].kind == Part::Kind::unknown &&
                   parts_[run_end].segment == parts_[part].segment) {
                ++run_end;
            }
            part = run_end == part ? part + 1 : scan_run(part, run_end, *worker);
        }
        workers_.give_back(std::move(worker));
    });
}

// Scans parts from `first` on whose heads can be read at once. Returns the one after them.
std::size_t GrammarScan::scan_run(std::size_t first, std::size_t end, Worker& worker) {
    const Part& part = parts_[first];
    const auto fetched = heads_.fetch_heads(part.segment, part.number, part.number + (end - first));
    for (std::size_t index = 0; index < fetched.heads.size(); ++index) {
        scan(parts_[first + index], fetched.heads[index], worker);
        throw_if_cancelled();
    }
    return first + fetched.heads.size();
}

bool GrammarScan::read_tokens(const Part& part, const PartHeads::FetchedHeads::Head& head,
                              Worker& worker) {
    const SegmentTokens& tokens = tokens_[part.segment];
    // A damaged section has no words. Reading the files of its segment reports the damage.
    const bool is_damaged =
        tokens.num_words() + tokens.num_separators() == 0 && heads_.has_words(part.segment);
    return head.status == BlockStatus::ok && !is_damaged && tokens.are_sound() &&
           worker.effects.read_tokens(head.payload, head.pool_size, tokens);
}

void GrammarScan::scan(Part& part, const PartHeads::FetchedHeads::Head& head, Worker& worker) {
    part.kind = Part::Kind::unknown;
    part.pieces.clear();
    if (!read_tokens(part, head, worker)) {
        return;
    }
    if (worker.effects.is_idle() && part.first_state == LineAutomaton::kStart) {
        part.kind = Part::Kind::idle;
        part.last_state = LineAutomaton::kStart;
        return;
    }
    if (options_.goal != Goal::count || is_slow()) {
        return;
    }
    worker.lines.begin(part.first_state);
    if (worker.effects.read_rules() && read_blocks(part, worker)) {
        part.kind = Part::Kind::counted;
        part.pieces = worker.lines.pieces();
        part.ends_with_file = worker.lines.ends_with_file();
        part.last_state = worker.lines.state();
        part.size = worker.lines.size();
    } else if (worker.effects.is_slow()) {
        ++num_slow_;
    }
}

bool GrammarScan::read_blocks(const Part& part, Worker& worker) const {
    const std::uint64_t end = (&part + 1)->begin;
    if (end - part.begin > kMaxPartSize) {
        return false;
    }
    return source_->for_each_stored(
               part.begin / block_size_, end / block_size_,
               [&](Bytes block, std::uint32_t uncompressed_size, bool is_last) {
                   const std::optional<BlockHeader> header = parse_block_header(block);
                   return header && header->codec == Codec::gompresso_tadoc &&
                          header->uncompressed_size == uncompressed_size &&
                          (is_last || uncompressed_size == block_size_) &&
                          check_block(*header, block) == BlockStatus::ok &&
                          worker.lines.read(block.subspan(kBlockHeaderSize), uncompressed_size);
               }) &&
           worker.lines.finish();
}

// Sets the states in which a file continues in other parts, where they were scanned in others.
void GrammarScan::find_other_states(const LayoutView& file, std::vector<std::size_t>& again) {
    if (only_piece_of(file)) {
        return;
    }
    const auto pieces = pieces_of(file);
    if (!pieces) {
        return;
    }
    for (std::size_t index = 1; index < pieces->size(); ++index) {
        const Part& before = parts_[(*pieces)[index - 1].part];
        Part& part = parts_[(*pieces)[index].part];
        if (!follows((*pieces)[index], (*pieces)[index - 1]) || !before.is_known() ||
            !part.is_known()) {
            return;
        }
        if (part.first_state != before.last_state) {
            part.first_state = before.last_state;
            again.push_back((*pieces)[index].part);
        }
    }
}

void GrammarScan::scan_again(std::span<const std::size_t> parts, unsigned num_threads) {
    std::vector<std::size_t> each(parts.begin(), parts.end());
    std::sort(each.begin(), each.end());
    each.erase(std::unique(each.begin(), each.end()), each.end());
    parallel_for_all(each.size(), num_threads, [&](std::size_t index) {
        auto worker = take_worker();
        scan_run(each[index], each[index] + 1, *worker);
        workers_.give_back(std::move(worker));
    });
}

// The lines of a piece; nullptr if it is not one of its part.
const LinesOfPiece* GrammarScan::find(const Piece& piece) const {
    const Part& part = parts_[piece.part];
    const std::uint64_t begin = piece.begin - part.begin, end = piece.end - part.begin;
    const auto found = std::lower_bound(
        part.pieces.begin(), part.pieces.end(), begin,
        [](const LinesOfPiece& each, std::uint64_t wanted) { return each.begin < wanted; });
    if (found == part.pieces.end() || found->begin != begin) {
        return nullptr;
    }
    const bool ends_there =
        found + 1 == part.pieces.end() ? end == part.size : (found + 1)->begin == end;
    return ends_there ? &*found : nullptr;
}

std::optional<std::uint64_t> GrammarScan::num_lines(const LayoutView& file) const {
    if (const auto piece = only_piece_of(file)) {
        return num_lines_of({&*piece, 1});
    }
    const auto pieces = pieces_of(file);
    return pieces ? num_lines_of(*pieces) : std::nullopt;
}

std::optional<std::uint64_t> GrammarScan::num_lines_of(std::span<const Piece> pieces) const {
    std::uint64_t total = 0;
    State state = automaton_.line_start;  // at the beginning of the next piece
    bool ends_with_file = true;
    for (std::size_t index = 0; index < pieces.size(); ++index) {
        const Piece& piece = pieces[index];
        const Part& part = parts_[piece.part];
        const bool begins_part = piece.begin == part.begin;
        if ((index != 0 && (ends_with_file || !follows(piece, pieces[index - 1]))) ||
            (begins_part && part.kind == Part::Kind::counted && part.first_state != state)) {
            return std::nullopt;
        }
        if (part.kind == Part::Kind::idle && state == LineAutomaton::kStart) {
            ends_with_file = index + 1 == pieces.size();
            continue;
        }
        const LinesOfPiece* const found = part.kind == Part::Kind::counted ? find(piece) : nullptr;
        if (found == nullptr || found->is_undecided) {
            return std::nullopt;
        }
        total += found->num_lines;
        state = part.last_state;
        ends_with_file = found != &part.pieces.back() || part.ends_with_file;
    }
    if (ends_with_file) {
        return total;
    }
    const LineAutomaton::LineEnd end = automaton_.at_end_of_file(state);
    return end == LineAutomaton::LineEnd::unsure
               ? std::nullopt
               : std::optional(total + (end == LineAutomaton::LineEnd::match ? 1 : 0));
}

}  // namespace gompfs::search
