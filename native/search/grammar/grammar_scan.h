// Searches the parts of an archive without making their text, for the lines of each file that
// match.
//
// Parts whose tokens are all idle (line_automaton.h) have no match: of them, only the tokens in the
// head are read. The lines of other parts are counted or made if that is asked for. Parts are
// scanned on several threads, each as if a line began with it. If a file continues in a part in
// another state, the part is scanned again.
//
// An archive may be hostile. A file has no answer if its extents are not pieces of successive
// parts, or if a part of it is damaged, takes too long, or has text that the automaton cannot
// decide. What only decoding could tell of idle parts is believed (file_filter.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "blocks/block_source.h"
#include "blocks/file_layouts.h"
#include "common/spares.h"
#include "search/grammar/file_windows.h"
#include "search/grammar/line_automaton.h"
#include "search/grammar/line_windows.h"
#include "search/grammar/part_lines.h"
#include "search/grammar/token_effects.h"
#include "text/part_heads.h"

namespace gompfs::search {

class GrammarScan {
  public:
    enum class Goal : std::uint8_t {
        skip,   // tell files without a match; parts that are not idle are not looked at further
        lines,  // the same, and then make the lines of some files that match
        count,  // count the lines of all files
    };

    struct Options {
        Goal goal;
        // Searches for which decoding is fast should not take many steps of a part (PartEffects).
        std::size_t max_steps;
        bool counts_line_feeds;  // whether lines need their numbers
    };

    // `source` may be nullptr if the goal is to skip. All must outlive this.
    GrammarScan(LineAutomaton automaton, WordRule rule, PartHeads& heads, const BlockSource* source,
                std::uint64_t block_size, const Options& options);

    // Scans the parts of these files. Throws what PartHeads and BlockSource throw.
    template <typename Files>
    void run(const Files& files, unsigned num_threads) {
        for (std::size_t index = 0; index < files.size(); ++index) {
            mark_needed(files.layout(files[index]));
        }
        scan_needed(num_threads);
        for (int round = 0; round < kMaxRounds && options_.goal == Goal::count; ++round) {
            std::vector<std::size_t> again;
            for (std::size_t index = 0; index < files.size(); ++index) {
                find_other_states(files.layout(files[index]), again);
            }
            if (again.empty()) {
                break;
            }
            scan_again(again, num_threads);
        }
    }

    // Whether so many parts took too long that the others were not counted.
    bool is_slow() const { return num_slow_ >= kMaxSlow; }

    // How many lines of a file match. Nothing if that is not known.
    std::optional<std::uint64_t> num_lines(const LayoutView& file) const;
    // Whether it is not known that no line of a file matches.
    bool may_match(const LayoutView& file) const { return num_lines(file) != 0; }

    // The lines of a file that match. Nothing if it is better, or necessary, to decode the file.
    // Any number of threads may call it, if the goal is lines.
    std::optional<FileWindows> windows_of(const LayoutView& file);

  private:
    using State = LineAutomaton::State;
    static constexpr int kMaxRounds = 8;
    static constexpr int kMaxSlow = 16;
    static constexpr int kMaxDense = 16;
    static constexpr std::size_t kMaxKept = 16;  // parts with windows

    struct Part {
        enum class Kind : std::uint8_t {
            unneeded,
            unknown,
            idle,  // in the state kStart from its beginning to its end
            counted,
        };

        bool is_known() const { return kind == Kind::idle || kind == Kind::counted; }

        std::uint64_t begin;  // in the stream; its end is the beginning of the next one
        std::size_t segment, number;
        Kind kind = Kind::unneeded;
        State first_state, last_state;
        // If it was counted:
        std::uint64_t size = 0;
        bool ends_with_file = false;
        std::vector<LinesOfPiece> pieces;
    };
    struct Worker {
        Worker(const LineAutomaton& automaton, WordRule rule, const Options& options)
            : effects(automaton, rule, options.max_steps),
              lines(automaton, effects),
              windows(effects, options.counts_line_feeds) {}

        PartEffects effects;
        PartLines lines;
        LineWindows windows;
    };
    // The windows of a part, which the first thread that needs them makes.
    struct MadeWindows {
        std::once_flag is_made;
        std::shared_ptr<const PartWindows> windows;  // nullptr if they could not be made
    };
    // A range of the stream in one part.
    struct Piece {
        std::size_t part;
        std::uint64_t begin, end;  // in the stream
    };

    std::size_t part_at(std::uint64_t offset) const;
    std::optional<Piece> only_piece_of(const LayoutView& file) const;
    std::optional<std::vector<Piece>> pieces_of(const LayoutView& file) const;
    bool follows(const Piece& piece, const Piece& before) const;
    const LinesOfPiece* find(const Piece& piece) const;
    std::optional<std::uint64_t> num_lines_of(std::span<const Piece> pieces) const;

    void mark_needed(const LayoutView& file);
    bool may_skip_many(unsigned num_threads);
    void scan_needed(unsigned num_threads);
    std::size_t scan_run(std::size_t first, std::size_t end, Worker& worker);
    void scan(Part& part, const PartHeads::FetchedHeads::Head& head, Worker& worker);
    bool read_tokens(const Part& part, const PartHeads::FetchedHeads::Head& head, Worker& worker);
    bool read_blocks(const Part& part, Worker& worker) const;
    std::unique_ptr<Worker> take_worker() {
        return workers_.take(
            [this] { return std::make_unique<Worker>(automaton_, rule_, options_); });
    }
    void find_other_states(const LayoutView& file, std::vector<std::size_t>& again);
    void scan_again(std::span<const std::size_t> parts, unsigned num_threads);

    bool are_windows_of_use() const {
        return !is_slow() && (num_dense_ < kMaxDense || num_dense_ < num_made_);
    }
    std::shared_ptr<const PartWindows> windows_of_part(std::size_t part);
    std::shared_ptr<const PartWindows> make_windows(const Part& part);

    const LineAutomaton automaton_;
    const WordRule rule_;
    PartHeads& heads_;
    const BlockSource* const source_;
    const std::uint64_t block_size_;
    const Options options_;
    std::vector<SegmentTokens> tokens_;  // by segment
    std::vector<Part> parts_;            // in the order of the stream; one after those of a segment
    Spares<Worker> workers_;
    std::atomic<int> num_slow_ = 0;
    std::atomic<int> num_dense_ = 0,
                     num_made_ = 0;  // parts with too many lines for windows; others
    std::mutex mutex_;               // protects what follows
    std::list<std::pair<std::size_t, std::shared_ptr<MadeWindows>>> made_;  // last used first
};

}  // namespace gompfs::search
