// The submodules of the Python module gompfs._native. Each function defines one of them, or one
// class of them.
#pragma once

#include <nanobind/nanobind.h>

namespace gompfs {

void bind_codec(nanobind::module_& module);
void bind_grammar(nanobind::module_& module);
void bind_index(nanobind::module_& module);

// gompfs._native.blocks
void bind_stored_sizes(nanobind::module_& module);
void bind_block_reader(nanobind::module_& module);

// gompfs._native.fuse
void bind_reader_table(nanobind::module_& module);
void bind_listing_table(nanobind::module_& module);
void bind_reply_cache(nanobind::module_& module);
void bind_request_loop(nanobind::module_& module);
void bind_kernel_mount(nanobind::module_& module);

}  // namespace gompfs
