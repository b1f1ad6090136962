// Remembers what was found in the content of files, so that content which several files share (hard
// links, equal files) is searched once. A small archive can have any number of files with the same
// large content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "blocks/file_layouts.h"
#include "search/print/line_sink.h"

namespace gompfs::search {

// What FileWalker has passed on to the sink for one file.
class ContentRecord {
  public:
    enum class Kind { matched, context, gap };

    // Has no effect once the record has become too large. A gap has no lines.
    void add(Kind kind, const FoundLines* lines);
    // Ends the record; nothing is added later. has_end: the sink was told that the file ended.
    void finish(const FileCounts& counts, bool has_end);

    // Whether all was added.
    bool is_complete() const { return is_finished_ && !is_too_large_; }
    std::size_t num_bytes() const { return num_bytes_; }
    bool has_end() const { return has_end_; }
    const FileCounts& counts() const { return counts_; }

    // Calls pass_on(kind, lines) for what was added.
    template <typename PassOn>
    void for_each(const PassOn& pass_on) const {
        for (const Event& event : events_) {
            pass_on(event.kind, event.lines());
        }
    }

  private:
    struct Event {
        FoundLines lines() const;

        Kind kind{};
        bool is_replaced = false;
        std::string bytes, printed;
        std::vector<Match> matches, replacements;
        std::uint64_t line_number = 0, file_offset = 0;
        std::size_t num_matches = 0;
    };

    std::vector<Event> events_;
    std::size_t num_bytes_ = sizeof(ContentRecord);
    FileCounts counts_;
    bool has_end_ = false, is_finished_ = false, is_too_large_ = false;
};

// The records of the files that were searched last. Thread-safe.
class ContentCache {
  public:
    struct Key {
        Key(const LayoutView& view, bool is_root_of_search);
        bool operator==(const Key& other) const;

        std::uint64_t hash;
        FileLayout layout;
        bool is_root;  // what a NUL means depends on it
    };

    // Whether to remember what is found in a file: not if it is small, or has very many extents.
    static bool is_for(const LayoutView& layout);

    // Returns the record of a file with the same content, or nullptr.
    std::shared_ptr<const ContentRecord> find(const Key& key) const;
    // Has no effect if the record is not complete.
    void add(const Key& key, std::shared_ptr<const ContentRecord> record);

  private:
    struct Item {
        Key key;
        std::shared_ptr<const ContentRecord> record;

        std::size_t num_bytes() const;
    };

    mutable std::mutex mutex_;
    std::list<Item> items_;  // the oldest one first
    std::unordered_map<std::uint64_t, std::list<Item>::iterator> by_hash_;
    std::size_t num_bytes_ = 0;
};

}  // namespace gompfs::search
