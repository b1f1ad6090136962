// Counts the lines of a part that match, piece by piece, from the symbols of its blocks.
//
// The blocks are checked so strictly that their symbols give the text that decoding them would
// give: a symbol that reaches over the end of a block is the same in both blocks, each block begins
// where its first symbol says, and the symbols end where the part ends.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/tadoc_codec.h"
#include "common/bytes.h"
#include "search/grammar/line_windows.h"
#include "search/grammar/part_effects.h"

namespace gompfs::search {

// A piece of a file in a part.
struct LinesOfPiece {
    std::uint32_t begin;  // in the text of the part
    std::uint32_t num_lines;
    bool is_undecided;
};

class PartLines {
  public:
    using State = LineAutomaton::State;

    PartLines(const LineAutomaton& automaton, PartEffects& effects)
        : automaton_(automaton), effects_(effects) {}

    // Begins a part, whose head was read, in a state. If `windows` is given, it makes the lines.
    void begin(State state, LineWindows* windows = nullptr);
    // Reads the next block, which was checked. Returns false if it is not valid, or takes too long.
    bool read(Bytes payload, std::uint32_t uncompressed_size);
    // Ends the part. Returns false if the blocks were not all of it.
    bool finish();

    const std::vector<LinesOfPiece>& pieces() const { return pieces_; }
    // Whether the last piece ends with a splitter. If not, its lines are those that have ended.
    bool ends_with_file() const { return ends_with_file_; }
    State state() const { return walk_.state; }
    std::uint64_t size() const { return size_; }  // of the text

  private:
    bool begin_block(std::uint64_t block_begin);
    bool measure();
    bool read_symbols();
    bool step(std::size_t at);
    bool end_piece(std::size_t at, std::uint64_t position);
    void add_piece(std::uint32_t num_lines, bool is_undecided);
    std::size_t pass_idle(std::size_t at);
    Facts stopping_facts() const;
    void set_facts();
    const Facts* facts() const { return facts_.data() + 1; }  // by index in the block

    const LineAutomaton& automaton_;
    PartEffects& effects_;
    LineWindows* windows_ = nullptr;
    TadocRanks block_;
    std::size_t first_ = 0;     // symbol of the block that does not begin in the block before
    LargeVector<Facts> facts_;  // those of the symbol before the block, then of its symbols
    std::uint64_t size_ = 0;    // of the blocks so far
    std::uint64_t position_ = 0, piece_begin_ = 0;
    std::uint64_t last_begin_ = 0;  // of the last symbol
    std::uint32_t last_ = 0;        // its rank
    bool ends_with_file_ = true;
    std::vector<std::uint64_t> ends_;  // of the pieces that end in the block
    PartEffects::Walk walk_{};
    std::vector<LinesOfPiece> pieces_;
};

}  // namespace gompfs::search
