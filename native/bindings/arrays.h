// Conversions between C++ values and Python's bytes and NumPy arrays. Arrays that are returned to
// Python either own their values (to_array) or keep the C++ object alive (to_view).
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gompfs {

// A contiguous array of Python, which this object keeps alive.
template <typename Value>
using Array = nanobind::ndarray<const Value, nanobind::ndim<1>, nanobind::c_contig>;

template <typename Value>
std::span<const Value> as_span(const Array<Value>& array) {
    return {array.data(), array.size()};
}

inline std::string_view as_text(std::span<const std::uint8_t> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::string_view as_text(const nanobind::bytes& bytes) {
    return {bytes.c_str(), bytes.size()};
}

inline std::vector<std::uint8_t> as_vector(const nanobind::bytes& bytes) {
    const auto* begin = static_cast<const std::uint8_t*>(bytes.data());
    return {begin, begin + bytes.size()};
}

nanobind::bytes to_bytes(const auto& bytes) { return nanobind::bytes(bytes.data(), bytes.size()); }

// An array that is returned to Python.
template <typename Value>
using NewArray =
    nanobind::typed<nanobind::object, nanobind::ndarray<nanobind::numpy, Value, nanobind::ndim<1>>>;

// Returns values, copied or moved, as an array that owns them.
template <typename Values, typename Vector = std::remove_cvref_t<Values>>
NewArray<typename Vector::value_type> to_array(Values&& values) {
    namespace nb = nanobind;
    auto* copy = new Vector(std::forward<Values>(values));
    const nb::capsule owner(copy, [](void* held) noexcept { delete static_cast<Vector*>(held); });
    return nb::cast(nb::ndarray<nb::numpy, typename Vector::value_type, nb::ndim<1>>(
        copy->data(), {copy->size()}, owner));
}

// Returns values that belong to a C++ object as an array that keeps the object alive.
template <typename Owner, typename Values>
NewArray<const typename Values::value_type> to_view(const Owner& owner, const Values& values) {
    namespace nb = nanobind;
    return nb::cast(nb::ndarray<nb::numpy, const typename Values::value_type, nb::ndim<1>>(
        values.data(), {values.size()}, nb::find(owner)));
}

// Defines a property of a class: a view of the values of one of its members.
template <auto Member, typename Class>
void def_view(nanobind::class_<Class>& of, const char* name, const char* doc = "") {
    of.def_prop_ro(name, [](const Class& self) { return to_view(self, self.*Member); }, doc);
}

}  // namespace gompfs
