// The part of GrammarScan that makes lines; see grammar_scan.h.
#include <algorithm>
#include <utility>

#include "search/grammar/grammar_scan.h"

namespace gompfs::search {

std::shared_ptr<const PartWindows> GrammarScan::make_windows(const Part& part) {
    const auto& sizes = heads_.segments()[part.segment].head_sizes;
    if (part.number >= sizes.size() || sizes[part.number] == 0 || !are_windows_of_use()) {
        return nullptr;
    }
    auto worker = take_worker();
    const auto fetched = heads_.fetch_heads(part.segment, part.number, part.number + 1);
    worker->lines.begin(automaton_.line_start, &worker->windows);
    std::optional<PartWindows> made;
    if (read_tokens(part, fetched.heads.front(), *worker) && worker->effects.read_rules() &&
        read_blocks(part, *worker)) {
        made = worker->windows.finish(worker->lines.size(), worker->lines.ends_with_file(),
                                      !worker->lines.pieces().back().is_undecided);
    }
    num_slow_ += worker->effects.is_slow() ? 1 : 0;
    num_dense_ += worker->windows.is_dense() ? 1 : 0;
    num_made_ += made ? 1 : 0;
    workers_.give_back(std::move(worker));
    return made ? std::make_shared<const PartWindows>(std::move(*made)) : nullptr;
}

std::shared_ptr<const PartWindows> GrammarScan::windows_of_part(std::size_t part) {
    std::shared_ptr<MadeWindows> made;
    {
        const std::lock_guard lock(mutex_);
        const auto known = std::find_if(made_.begin(), made_.end(),
                                        [&](const auto& each) { return each.first == part; });
        if (known != made_.end()) {
            made_.splice(made_.begin(), made_, known);
        } else {
            made_.emplace_front(part, std::make_shared<MadeWindows>());
            made_.resize(std::min(made_.size(), kMaxKept));
        }
        made = made_.front().second;
    }
    std::call_once(made->is_made, [&] { made->windows = make_windows(parts_[part]); });
    return made->windows;
}

std::optional<FileWindows> GrammarScan::windows_of(const LayoutView& file) {
    if (!are_windows_of_use()) {
        return std::nullopt;
    }
    const auto pieces = pieces_of(file);
    if (!pieces || pieces->empty()) {
        return std::nullopt;
    }
    FileWindows windows;
    for (std::size_t index = 0; index < pieces->size(); ++index) {
        const Piece& piece = (*pieces)[index];
        auto part = windows_of_part(piece.part);
        if (!part || (index != 0 && !follows(piece, (*pieces)[index - 1]))) {
            return std::nullopt;
        }
        const std::uint64_t begin = piece.begin - parts_[piece.part].begin;
        const std::uint64_t end = piece.end - parts_[piece.part].begin;
        const auto found =
            std::lower_bound(part->pieces.begin(), part->pieces.end(), begin,
                             [](const PartWindows::Piece& each, std::uint64_t wanted) {
                                 return each.begin < wanted;
                             });
        if (found == part->pieces.end() || found->begin != begin || !found->is_decided) {
            return std::nullopt;
        }
        const bool is_last_of_part = found + 1 == part->pieces.end();
        const bool ends_with_file = !is_last_of_part || part->ends_with_file;
        if (end != (is_last_of_part ? part->size : (found + 1)->begin) ||
            (ends_with_file && index + 1 != pieces->size())) {
            return std::nullopt;
        }
        const auto number = static_cast<std::size_t>(found - part->pieces.begin());
        if (!windows.add(std::move(part), number, piece.end - piece.begin)) {
            return std::nullopt;
        }
    }
    windows.finish();
    return windows;
}

}  // namespace gompfs::search
