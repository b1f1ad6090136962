// INIT, the first request of a mount, in which the kernel and the daemon agree on the version of
// the protocol and on its features.
#pragma once

namespace gompfs {

// What a mount wants of the kernel, and what the kernel supports of that.
struct Features {
    bool passthrough;  // the kernel reads some files from backing files
    bool acls;         // the kernel applies the POSIX ACLs of files
};

// Reads INIT from a FUSE device and answers it. Returns the wanted features that the kernel
// supports. Throws std::system_error if the device cannot be read or written, and
// std::runtime_error if the kernel's version of the protocol is not supported.
Features answer_init(int device, const Features& wanted);

}  // namespace gompfs
