// INIT, the first request of a mount, in which the kernel and the daemon agree on the version of
// the protocol and on its features.
#pragma once

namespace gompfs {

// Reads INIT from a FUSE device and answers it. Returns whether the kernel supports passthrough, if
// that is wanted. Throws std::system_error if the device cannot be read or written, and
// std::runtime_error if the kernel's version of the protocol is not supported.
bool answer_init(int device, bool wants_passthrough);

}  // namespace gompfs
