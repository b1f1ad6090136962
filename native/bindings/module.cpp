// The Python module gompfs._native: a submodule for each directory of the C++ core, the
// cancellation of all work, and the exceptions that several submodules raise.
#include <nanobind/nanobind.h>

#include <cerrno>
#include <exception>
#include <initializer_list>
#include <system_error>

#include "bindings/bindings.h"
#include "common/cancellation.h"

namespace nb = nanobind;

namespace gompfs {
namespace {

// Cancelled becomes KeyboardInterrupt; a failed system call becomes OSError.
void translate_exception(const std::exception_ptr& error, void*) {
    try {
        std::rethrow_exception(error);
    } catch (const Cancelled&) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
    } catch (const std::system_error& of_system) {
        errno = of_system.code().value();
        PyErr_SetFromErrno(PyExc_OSError);
    }
}

void add_submodule(nb::module_& module, const char* name, const char* documentation,
                   std::initializer_list<void (*)(nb::module_&)> bindings) {
    nb::module_ submodule = module.def_submodule(name, documentation);
    for (const auto bind : bindings) {
        bind(submodule);
    }
}

}  // namespace
}  // namespace gompfs

NB_MODULE(_native, module) {
    nb::set_leak_warnings(false);  // objects that live until the process ends are not freed
    module.doc() =
        "The C++ core. Its functions release the GIL.\n\n"
        "Cancelled work raises KeyboardInterrupt. A failed system call raises OSError.";
    nb::register_exception_translator(gompfs::translate_exception);
    module.def(
        "cancel_all", [] { gompfs::Cancellation::of_process().cancel(); },
        "Stops all work of this module in all threads, which then raises KeyboardInterrupt.");
    // A class must be defined before a function whose signature names it.
    gompfs::add_submodule(
        module, "codec", "Codecs: batches of blocks, encoded and decoded on several threads.",
        {gompfs::bind_decode_work, gompfs::bind_buffer_pool, gompfs::bind_codec_dictionary,
         gompfs::bind_codec_blocks, gompfs::bind_codec_sequences});
    gompfs::add_submodule(module, "text",
                          "Text: its words, word grammars, and parts that are stored as grammars.",
                          {gompfs::bind_grammar, gompfs::bind_part_heads,
                           gompfs::bind_parts_builder, gompfs::bind_plain_text});
    gompfs::add_submodule(module, "statistics", "Statistics of grammars, and their reports.",
                          {gompfs::bind_corpus, gompfs::bind_forest, gompfs::bind_line_formats,
                           gompfs::bind_merge_lines, gompfs::bind_overlap, gompfs::bind_postings,
                           gompfs::bind_report, gompfs::bind_row_lines});
    gompfs::add_submodule(module, "index",
                          "The columns of an index, its SQLite image, and the rows of files.",
                          {gompfs::bind_index_columns, gompfs::bind_index_blocks});
    gompfs::add_submodule(module, "sources", "Local files and directories, for packing.",
                          {gompfs::bind_loaded_files, gompfs::bind_file_loader,
                           gompfs::bind_large_files, gompfs::bind_tree_size});
    gompfs::add_submodule(
        module, "blocks",
        "Decoded blocks and the files in them. Any number of threads may use its classes.",
        {gompfs::bind_stored_sizes, gompfs::bind_block_reader, gompfs::bind_range_plan,
         gompfs::bind_slice_columns, gompfs::bind_content_loader});
    gompfs::add_submodule(module, "gpu", "Copies to and from pinned memory.",
                          {gompfs::bind_host_copy});
    gompfs::add_submodule(module, "search", "Search for patterns in files.", {gompfs::bind_search});
    gompfs::add_submodule(
        module, "fuse", "The FUSE server of a mount. Any number of threads may use its classes.",
        {gompfs::bind_reader_table, gompfs::bind_listing, gompfs::bind_listing_table,
         gompfs::bind_reply_cache, gompfs::bind_fuse_server, gompfs::bind_kernel_mount});
}
