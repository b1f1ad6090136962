// The functions of gompfs._native.fuse that answer requests: the loop over a FUSE device, and the
// replies that hold attributes.
#include "fuse/request_loop.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <span>

#include "bindings/bindings.h"
#include "bindings/inode.h"
#include "fuse/attributes.h"
#include "fuse/listing_table.h"
#include "fuse/reader_table.h"
#include "fuse/reply_cache.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

template <typename Value>
nb::bytes bytes_of(const Value& value) {
    return nb::bytes(&value, sizeof value);
}

// If stored_size is absent, the file has no holes.
nb::bytes entry_reply(nb::handle inode, std::uint32_t cache_seconds,
                      std::optional<std::uint64_t> stored_size) {
    fuse_entry_out entry{};
    entry.entry_valid = cache_seconds;
    if (!inode.is_none()) {
        const InodeFields fields = inode_of(inode);
        entry = make_entry(fields, stored_size.value_or(fields.size), cache_seconds);
    }
    return bytes_of(entry);
}

nb::bytes attributes_reply(nb::handle inode, std::uint32_t cache_seconds,
                           std::optional<std::uint64_t> stored_size) {
    const InodeFields fields = inode_of(inode);
    fuse_attr_out reply{};
    reply.attr = make_attributes(fields, stored_size.value_or(fields.size));
    reply.attr_valid = cache_seconds;
    return bytes_of(reply);
}

int run(int device, const ReaderTable& readers, ListingTable& listings, const ReplyCache& replies,
        std::size_t buffer_size, nb::callable answer) {
    const nb::gil_scoped_release release;
    return answer_requests(device, {readers, listings, replies}, buffer_size,
                           [&](std::span<const std::uint8_t> request) {
                               const nb::gil_scoped_acquire acquire;
                               answer(nb::bytes(request.data(), request.size()));
                           });
}

}  // namespace

void bind_request_loop(nb::module_& module) {
    module.def("entry_reply", &gompfs::entry_reply, "inode"_a.none(), "cache_seconds"_a,
               "stored_size"_a = nb::none());
    module.def("attributes_reply", &gompfs::attributes_reply, "inode"_a, "cache_seconds"_a,
               "stored_size"_a = nb::none());
    module.def("answer_requests", &gompfs::run, "device"_a, "readers"_a, "listings"_a, "replies"_a,
               "buffer_size"_a, "answer"_a);
}

}  // namespace gompfs
