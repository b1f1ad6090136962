// The Python class gompfs._native.fuse.KeptReplies; see native/fuse/kept_replies.h.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>

#include "bindings/bindings.h"
#include "fuse/kept_replies.h"
#include "fuse/request.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

Request request_of(const nb::bytes& bytes) {
    return Request({reinterpret_cast<const std::uint8_t*>(bytes.c_str()), bytes.size()});
}

void keep_reply(KeptReplies& replies, const nb::bytes& request, std::int32_t error,
                const nb::bytes& content) {
    replies.insert(request_of(request), {error, {content.c_str(), content.size()}});
}

}  // namespace

void bind_reply_cache(nb::module_& module) {
    nb::class_<KeptReplies>(module, "KeptReplies")
        .def(nb::init<std::size_t>(), "max_bytes"_a)
        .def("insert", &gompfs::keep_reply, "request"_a, "error"_a, "content"_a)
        .def("set_nodes_with_xattrs", &KeptReplies::set_nodes_with_xattrs, "nodes"_a);
}

}  // namespace gompfs
