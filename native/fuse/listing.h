// The entries of a directory, and their encoding as replies to READDIRPLUS (linux/fuse.h).
//
// A listing keeps the fields of each inode (52 bytes per entry with its name's end) and all names
// in one string. If the entries are sorted by name, `find` answers LOOKUP by binary search.
// Position 0 is ".", 1 is "..", and the position after an entry is its index plus 1, so that the
// kernel can continue anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "blocks/stored_sizes.h"
#include "fuse/attributes.h"

namespace gompfs {

// One directory with the attributes of its entries.
class Listing {
  public:
    // Starts a listing with "." and "..". The kernel may cache the attributes of entries for
    // cache_seconds. If that is 0, attributes are left out, and the kernel asks for them when
    // needed.
    Listing(std::uint64_t node, std::uint32_t cache_seconds);

    void add(std::string_view name, const InodeFields& inode) { add(name, inode, inode.size); }
    void add(std::string_view name, const InodeFields& inode, std::uint64_t stored_size);

    // Appends the entries from `position` on in READDIRPLUS format, as many as fit into `capacity`
    // bytes.
    void pack(std::uint64_t position, std::size_t capacity, std::vector<std::uint8_t>& out) const;

    // Returns the inode of a name; nullptr if there is none, or if the entries were not added in
    // the order of their names.
    const InodeFields* find(std::string_view name) const;

    // The number of bytes that the archive stores of a file. `inode` must be an element of `inodes`
    // or the result of `find`.
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
    StoredSizes stored_sizes_;              // by index in inodes_
    std::vector<std::uint32_t> name_ends_;  // end of each name in names_
    std::string names_;
    bool is_sorted_ = true;  // whether the names after "." and ".." ascend
};

}  // namespace gompfs
