// The Python module gompfs._native: one submodule for each room of the C++ core, the cancellation
// of all work, and the exceptions that several submodules raise.
#include <nanobind/nanobind.h>

#include <cerrno>
#include <exception>
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

void add_submodule(nb::module_& module, const char* name, void (*bind)(nb::module_&)) {
    nb::module_ submodule = module.def_submodule(name);
    bind(submodule);
}

void bind_blocks(nb::module_& module) {
    module.doc() = "Reads of decoded blocks.";
    bind_stored_sizes(module);
    bind_block_reader(module);
}

void bind_fuse(nb::module_& module) {
    module.doc() = "The FUSE server of a mount.";
    bind_reader_table(module);
    bind_listing_table(module);
    bind_reply_cache(module);
    bind_request_loop(module);
    bind_kernel_mount(module);
}

}  // namespace
}  // namespace gompfs

NB_MODULE(_native, module) {
    nb::set_leak_warnings(false);  // objects that live until the process ends are not freed
    module.doc() = "The C++ core. Its functions release the GIL.";
    nb::register_exception_translator(gompfs::translate_exception);
    module.def("cancel_all", [] { gompfs::Cancellation::of_process().cancel(); });
    gompfs::add_submodule(module, "codec", gompfs::bind_codec);  // defines HeldBytes and DecodeWork
    gompfs::add_submodule(module, "grammar", gompfs::bind_grammar);
    gompfs::add_submodule(module, "index", gompfs::bind_index);
    gompfs::add_submodule(module, "blocks", gompfs::bind_blocks);  // defines StoredSizes
    gompfs::add_submodule(module, "fuse", gompfs::bind_fuse);
}
