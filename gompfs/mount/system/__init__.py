"""The operating system around a mount: mount table, unmounting, tuning, systemd, memory."""
