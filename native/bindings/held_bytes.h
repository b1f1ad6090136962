// Memory of C++ that Python reads and writes as a memoryview.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gompfs {

// Bytes, and the object that owns them. The owner lives until the last view of the bytes is gone.
struct HeldBytes {
    std::uint8_t* data;
    std::size_t size;
    bool is_read_only;
    std::shared_ptr<const void> owner;

    // Implements Python's buffer protocol.
    static int fill_buffer(PyObject* self, Py_buffer* view, int flags) {
        const auto* held = nanobind::inst_ptr<HeldBytes>(self);
        return PyBuffer_FillInfo(view, self, held->data, static_cast<Py_ssize_t>(held->size),
                                 held->is_read_only, flags);
    }

    // Adds the class to a module.
    static void define(nanobind::module_& module) {
        static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&fill_buffer)},
                                      {0, nullptr}};
        nanobind::class_<HeldBytes>(module, "HeldBytes", nanobind::type_slots(slots));
    }
};

inline nanobind::memoryview view_of(HeldBytes held) {
    return nanobind::memoryview(nanobind::cast(std::move(held)));
}

}  // namespace gompfs
