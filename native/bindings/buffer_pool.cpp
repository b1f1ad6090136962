// The class gompfs._native.codec.BufferPool, and the memory that it hands out (HeldBytes).
#include "common/buffer_pool.h"

#include <nanobind/nanobind.h>

#include <utility>

#include "bindings/bindings.h"
#include "bindings/held_bytes.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gompfs {
namespace {

nb::memoryview allocate(BufferPool& pool, std::size_t size) {
    auto buffer = pool.allocate(size);
    std::uint8_t* const data = buffer.get();
    return view_of({data, size, false, std::move(buffer)});
}

}  // namespace

void bind_buffer_pool(nb::module_& codec) {
    HeldBytes::define(codec);
    nb::class_<BufferPool>(codec, "BufferPool",
                           "Memory that is reused once no view of it is left. Thread-safe.")
        .def(nb::init<>())
        .def("allocate", &allocate, "size"_a, "Returns `size` bytes of undefined content.")
        .def("drop_free", &BufferPool::drop_free, "Returns free memory to the system.")
        .def_prop_ro("num_free_bytes", &BufferPool::num_free_bytes,
                     "Number of bytes that wait to be reused.");
}

}  // namespace gompfs
