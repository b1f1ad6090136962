// Names for Python's types in the signatures of bindings. nanobind writes them into the type stubs;
// when a function is called, only the outermost type of an argument is checked.
#pragma once

#include <nanobind/nanobind.h>

namespace gompfs::py {

// A bytes-like object. A BufferView of another object raises Python's own error.
class Buffer : public nanobind::object {
    static bool is_any(PyObject*) { return true; }
    NB_OBJECT_DEFAULT(Buffer, nanobind::object, "typing_extensions.Buffer", is_any)
};

// A gompfs.model.Inode.
class Inode : public nanobind::object {
    NB_OBJECT_DEFAULT(Inode, nanobind::object, "gompfs.model.Inode", PyTuple_Check)
};

template <typename Key, typename Value>
using Dict = nanobind::typed<nanobind::dict, Key, Value>;
template <typename Signature>
using Callable = nanobind::typed<nanobind::callable, Signature>;
template <typename Item>
using List = nanobind::typed<nanobind::list, Item>;
template <typename Item>
using Sequence = nanobind::typed<nanobind::sequence, Item>;
template <typename... Items>
using Tuple = nanobind::typed<nanobind::tuple, Items...>;

}  // namespace gompfs::py
