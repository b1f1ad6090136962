-- The index of an archive. Offsets and sizes are bytes; packed columns are arrays of little-endian integers.
PRAGMA page_size = 4096;
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- mode holds the file type; size is 0 for all but regular files and symlinks.
CREATE TABLE inode (
    ino INTEGER PRIMARY KEY,
    mode INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    gid INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    nlink INTEGER NOT NULL,
    rdev INTEGER NOT NULL,
    symlink_target BLOB
);

CREATE TABLE dirent (
    parent INTEGER NOT NULL,
    name BLOB NOT NULL,
    ino INTEGER NOT NULL,
    PRIMARY KEY (parent, name)
) WITHOUT ROWID;

-- The bytes of a file that are stored; what no extent covers reads as zeros.
CREATE TABLE extent (
    ino INTEGER NOT NULL,
    file_offset INTEGER NOT NULL,
    stream_offset INTEGER NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (ino, file_offset)
) WITHOUT ROWID;

CREATE TABLE xattr (
    ino INTEGER NOT NULL,
    name BLOB NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (ino, name)
) WITHOUT ROWID;

-- One per pack or add. Its blocks cover the solid stream from first_block * block_size on; all have
-- block_size bytes but the last. Packed: archive_offsets u64, compressed_sizes u32, codecs u8.
CREATE TABLE segment (
    number INTEGER PRIMARY KEY,
    first_block INTEGER NOT NULL,
    num_blocks INTEGER NOT NULL,
    uncompressed_size INTEGER NOT NULL,
    archive_offsets BLOB NOT NULL,
    compressed_sizes BLOB NOT NULL,
    codecs BLOB NOT NULL
);

-- Data beside the files, cut into blocks in the same way; kind 'grammar' is what /stats is computed from.
CREATE TABLE section (
    segment INTEGER NOT NULL,
    kind TEXT NOT NULL,
    uncompressed_size INTEGER NOT NULL,
    archive_offsets BLOB NOT NULL,
    compressed_sizes BLOB NOT NULL,
    PRIMARY KEY (segment, kind)
) WITHOUT ROWID;

-- Files that the grammar leaves out, since they are binary.
CREATE TABLE binary_file (ino INTEGER PRIMARY KEY);
