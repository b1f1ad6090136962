"""Archives as a read-only web site, for places where FUSE is refused."""
