// The Python class gompfs._native.fuse.ReplyCache; see native/fuse/reply_cache.h.
#include "fuse/reply_cache.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>

#include "bindings/bindings.h"
#include "fuse/request.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

Request request_of(const nb::bytes& bytes) {
    return Request({reinterpret_cast<const std::uint8_t*>(bytes.c_str()), bytes.size()});
}

void insert_reply(ReplyCache& replies, const nb::bytes& request, std::int32_t error,
                  const nb::bytes& content) {
    replies.insert(request_of(request), {error, {content.c_str(), content.size()}});
}

}  // namespace

void bind_reply_cache(nb::module_& module) {
    nb::class_<ReplyCache>(
        module, "ReplyCache",
        "Replies of the interpreter that stay true for the life of a mount, by request.")
        .def(nb::init<std::size_t>(), "max_bytes"_a,
             "Makes a table of up to `max_bytes` bytes. When it is full, all replies are dropped.")
        .def("insert", &gompfs::insert_reply, "request"_a, "error"_a, "content"_a,
             "Caches a reply to the same request on the same node; `error` is 0 or a negative "
             "errno.")
        .def("set_nodes_with_xattrs", &ReplyCache::set_nodes_with_xattrs, "nodes"_a,
             "Sets the nodes that have extended attributes, sorted; no other entry of the archive "
             "has any.");
}

}  // namespace gompfs
