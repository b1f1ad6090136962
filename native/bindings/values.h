// Copies columns of numbers from Python's bytes, which need not be aligned.
#pragma once

#include <nanobind/nanobind.h>

#include <cstring>
#include <vector>

#include "bindings/buffer_view.h"

namespace gompfs {

template <typename Value>
std::vector<Value> values_of(nanobind::handle column) {
    const BufferView view(column, PyBUF_SIMPLE);
    std::vector<Value> values(view.bytes().size() / sizeof(Value));
    if (values.size() * sizeof(Value) != view.bytes().size()) {
        throw nanobind::value_error("a column does not have whole values");
    }
    if (!values.empty()) {
        std::memcpy(values.data(), view.bytes().data(), view.bytes().size());
    }
    return values;
}

}  // namespace gompfs
