"""Slow, readable decoders of all codecs, and a reader of archives.

They are written from docs/format.md, and what the product reads is compared with them.
"""
