// What becomes of the lines that a search finds: text, JSON, or values for Python.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "search/match/matcher.h"
#include "search/print/search_options.h"

namespace gompfs::search {

// A line, or with --multiline several lines.
struct FoundLines {
    std::string_view bytes;  // with the line feed, if there is one
    std::uint64_t line_number;
    std::uint64_t file_offset;
    std::span<const Match> matches;  // in `bytes`; empty if the options do not need them
    // With --replace, the text to print, in which `matches` are the replacements. Else that of
    // `bytes`.
    std::string_view printed = bytes;
    std::span<const Match> replacements = {};  // in `printed`
    std::size_t num_matches = matches.size();  // in `bytes`
};

// What was found in a file.
struct FileCounts {
    std::uint64_t num_matched_lines = 0;  // with --multiline: how often lines were found together
    std::uint64_t num_lines = 0;          // all of these lines
    std::uint64_t num_matches = 0;
    std::uint64_t num_bytes = 0;                 // searched
    std::uint64_t num_bytes_printed = 0;         // without counts and paths alone, as in ripgrep
    std::optional<std::uint64_t> binary_offset;  // of a NUL that was found
    bool is_cut = false;                         // the search ended at the NUL
};

// Called for each file in turn, on one thread.
class LineSink {
  public:
    // Calls when_full() when max_output bytes or more of a file's output were not taken yet. It may
    // take them, or throw.
    LineSink(const SearchOptions& options, std::size_t max_output, std::function<void()> when_full)
        : options_(options), max_output_(max_output), when_full_(std::move(when_full)) {}
    virtual ~LineSink() = default;
    LineSink(const LineSink&) = delete;
    LineSink& operator=(const LineSink&) = delete;

    virtual void begin_file(std::string_view path) = 0;
    virtual void matched(const FoundLines& lines) = 0;
    virtual void context(const FoundLines& line) = 0;
    virtual void gap() = 0;  // between lines of context that do not follow each other
    virtual void end_file(const FileCounts& counts) = 0;
    // What the sink wrote since the last call, and whether a separator belongs before it, if there
    // was output before.
    struct Output {
        std::string text;
        bool needs_separator = false;
    };
    Output take_output() {
        file_begin_ = 0;
        num_taken_ += output_.size();
        return {std::exchange(output_, {}), std::exchange(begins_with_lines_, false)};
    }

    // The size of what was written for the last file.
    std::uint64_t output_size_of_file() const {
        return num_taken_ + output_.size() - num_taken_before_file_;
    }

    // Drops what was written for the last file, if nothing of it was taken.
    void drop_file() {
        output_.resize(file_begin_);
        begins_with_lines_ = begins_with_lines_ && file_begin_ != 0;
    }

    // The size of the output that was not taken.
    std::size_t size() const { return output_.size(); }

  protected:
    void begin_output_of_file() {
        file_begin_ = output_.size();
        num_taken_before_file_ = num_taken_ + file_begin_;
    }

    // Writes bytes of any number, which may be taken piece by piece.
    void add(std::string_view bytes) {
        for (; bytes.size() > kPiece; bytes.remove_prefix(kPiece)) {
            output_ += bytes.substr(0, kPiece);
            end_step();
        }
        output_ += bytes;
    }

    // To be called after each match or line that was written.
    void end_step() {
        if (output_.size() - file_begin_ >= max_output_) {
            when_full_();
        }
    }

    const SearchOptions& options_;
    std::string output_;              // that was not taken
    bool begins_with_lines_ = false;  // output_ does

  private:
    static constexpr std::size_t kPiece = 256 << 10;

    const std::size_t max_output_;
    const std::function<void()> when_full_;
    std::size_t file_begin_ = 0;                               // of the last file in output_
    std::uint64_t num_taken_ = 0, num_taken_before_file_ = 0;  // bytes
};

}  // namespace gompfs::search
