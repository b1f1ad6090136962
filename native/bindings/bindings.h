// The parts of the Python module gompfs._native. Each function adds the class or the functions that
// its file is named after to a submodule; module.cpp calls them all.
#pragma once

#include <nanobind/nanobind.h>

namespace gompfs {

// gompfs._native.codec
void bind_buffer_pool(nanobind::module_& codec);
void bind_codec_blocks(nanobind::module_& codec);
void bind_codec_dictionary(nanobind::module_& codec);
void bind_codec_sequences(nanobind::module_& codec);
void bind_decode_work(nanobind::module_& codec);

// gompfs._native.gpu
void bind_host_copy(nanobind::module_& gpu);

// gompfs._native.text
void bind_grammar(nanobind::module_& text);
void bind_part_heads(nanobind::module_& text);
void bind_parts_builder(nanobind::module_& text);
void bind_plain_text(nanobind::module_& text);

// gompfs._native.statistics
void bind_corpus(nanobind::module_& statistics);
void bind_forest(nanobind::module_& statistics);
void bind_line_formats(nanobind::module_& statistics);
void bind_merge_lines(nanobind::module_& statistics);
void bind_overlap(nanobind::module_& statistics);
void bind_postings(nanobind::module_& statistics);
void bind_report(nanobind::module_& statistics);
void bind_row_lines(nanobind::module_& statistics);

// gompfs._native.index
void bind_index_columns(nanobind::module_& index);
void bind_index_blocks(nanobind::module_& index);

// gompfs._native.sources
void bind_file_loader(nanobind::module_& sources);
void bind_large_files(nanobind::module_& sources);
void bind_loaded_files(nanobind::module_& sources);
void bind_tree_size(nanobind::module_& sources);

// gompfs._native.blocks
void bind_block_reader(nanobind::module_& blocks);
void bind_content_loader(nanobind::module_& blocks);
void bind_range_plan(nanobind::module_& blocks);
void bind_slice_columns(nanobind::module_& blocks);
void bind_stored_sizes(nanobind::module_& blocks);

// gompfs._native.search
void bind_search(nanobind::module_& search);

// gompfs._native.fuse
void bind_fuse_server(nanobind::module_& fuse);
void bind_kernel_mount(nanobind::module_& fuse);
void bind_listing(nanobind::module_& fuse);
void bind_listing_table(nanobind::module_& fuse);
void bind_reader_table(nanobind::module_& fuse);
void bind_reply_cache(nanobind::module_& fuse);

}  // namespace gompfs
