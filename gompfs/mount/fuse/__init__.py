"""The connection to the kernel: requests and replies, through /dev/fuse directly or through libfuse."""
