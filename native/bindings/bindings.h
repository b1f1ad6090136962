// The submodules of the Python module gompfs._native. Each function defines one of them.
#pragma once

#include <nanobind/nanobind.h>

namespace gompfs {

void bind_codec(nanobind::module_& module);
void bind_grammar(nanobind::module_& module);
void bind_index(nanobind::module_& module);
void bind_reading(nanobind::module_& module);

}  // namespace gompfs
