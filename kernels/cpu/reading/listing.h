// The entries of a directory, and how the kernel is told of them (READDIRPLUS, linux/fuse.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reading/attributes.h"
#include "reading/stored_sizes.h"

namespace gompfs {

// One directory with the attributes of its entries: 52 bytes for each, and its name.
class Listing {
  public:
    // Begins with "." and "..". The attributes of entries are true for that many seconds; those
    // that do not last are left out: the kernel asks for them when somebody wants them.
    Listing(std::uint64_t node, std::uint32_t cache_seconds);

    void add(std::string_view name, const InodeFields& inode) { add(name, inode, inode.size); }
    void add(std::string_view name, const InodeFields& inode, std::uint64_t stored_size);

    // Appends the entries from a position on as READDIRPLUS gives them, as many as fit into `room`.
    void pack(std::uint64_t position, std::size_t room, std::vector<std::uint8_t>& out) const;

    // The inode of a name; nullptr where there is none, or where entries came in another order than
    // that of their names.
    const InodeFields* find(std::string_view name) const;

    // How many bytes the archive stores of a file, which is one of `inodes` or what `find` gave.
    std::uint64_t stored_size(const InodeFields& inode) const {
        return stored_sizes_.of(static_cast<std::uint64_t>(&inode - inodes_.data()), inode.size);
    }

    bool is_sorted() const { return is_sorted_; }
    std::uint32_t cache_seconds() const { return cache_seconds_; }
    const std::vector<InodeFields>& inodes() const { return inodes_; }
    std::size_t num_bytes() const;

  private:
    std::string_view name_at(std::size_t index) const;

    const std::uint32_t cache_seconds_;
    std::vector<InodeFields> inodes_;
    StoredSizes stored_sizes_;              // by position in inodes_
    std::vector<std::uint32_t> name_ends_;  // in names_
    std::string names_;
    bool is_sorted_ = true;  // behind the first two
};

}  // namespace gompfs
