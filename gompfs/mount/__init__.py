"""Mounting archives through FUSE."""
