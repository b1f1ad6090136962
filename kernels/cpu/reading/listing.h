// Directories in the form in which the kernel takes them (READDIRPLUS, linux/fuse.h).
#pragma once

#include <linux/fuse.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gompfs {

// The entries of one directory with their attributes.
class Listing {
  public:
    // Begins with "." and "..". An entry's attributes are true for that many seconds; those that do
    // not last are left out: the kernel asks for them when somebody wants them.
    Listing(std::uint64_t node, std::uint32_t cache_seconds);

    void add(std::string_view name, const fuse_attr& attributes);

    std::size_t size() const { return starts_.size(); }
    // The entries from a position on, as many as fit into so many bytes.
    std::span<const std::uint8_t> entries(std::uint64_t position, std::size_t room) const;
    // What LOOKUP answers for a name; nullptr where there is none, or where entries came in another
    // order than that of their names.
    const fuse_entry_out* find(std::string_view name) const;
    bool is_sorted() const { return is_sorted_; }
    std::uint32_t cache_seconds() const { return cache_seconds_; }

  private:
    void append(std::string_view name, const fuse_entry_out& entry, std::uint64_t ino,
                std::uint32_t type);
    const fuse_direntplus& at(std::size_t index) const;
    std::string_view name_at(std::size_t index) const;

    const std::uint32_t cache_seconds_;
    std::vector<std::uint8_t> bytes_;
    std::vector<std::size_t> starts_;  // of entries in bytes_
    bool is_sorted_ = true;            // behind the first two
};

// The listings that are kept, up to a number of entries in all; the oldest go first.
class ListingTable {
  public:
    explicit ListingTable(std::size_t max_entries) : max_entries_(max_entries) {}

    std::shared_ptr<const Listing> find(std::uint64_t node) const;
    void insert(std::uint64_t node, std::shared_ptr<const Listing> listing);
    std::size_t num_entries() const;

  private:
    const std::size_t max_entries_;
    mutable std::shared_mutex mutex_;
    std::unordered_map<std::uint64_t, std::shared_ptr<const Listing>> listings_;
    std::deque<std::uint64_t> nodes_;  // in the order in which they came
    std::size_t num_entries_ = 0;
};

}  // namespace gompfs
