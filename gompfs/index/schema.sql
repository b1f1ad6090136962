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

-- One per pack or add. Block 0 lies at archive_offset, each next block on the first multiple of 16 after the one
-- before. The stream of the segment is cut into parts, each of which begins with a new block; all blocks of a part have
-- the block size but the last. Packed: compressed_sizes u32 and codecs u8 for each block; part_kinds u8, part_sizes u64
-- and head_sizes u32 for each part. Heads lie from heads_offset on as blocks do; a part with head size 0 has none.
CREATE TABLE segment (
    number INTEGER PRIMARY KEY,
    first_block INTEGER NOT NULL,
    archive_offset INTEGER NOT NULL,
    compressed_sizes BLOB NOT NULL,
    codecs BLOB NOT NULL,
    part_kinds BLOB NOT NULL,
    part_sizes BLOB NOT NULL,
    heads_offset INTEGER NOT NULL,
    head_sizes BLOB NOT NULL
);

-- Data beside the files, cut into blocks; kind 'words' is the words that several parts of text share.
CREATE TABLE section (
    segment INTEGER NOT NULL,
    kind TEXT NOT NULL,
    uncompressed_size INTEGER NOT NULL,
    archive_offset INTEGER NOT NULL,
    compressed_sizes BLOB NOT NULL,
    PRIMARY KEY (segment, kind)
) WITHOUT ROWID;

-- Files that statistics leave out, since they are binary.
CREATE TABLE binary_file (ino INTEGER PRIMARY KEY);

-- What each generation did, from generation 1 on. time: seconds since 1970. added, removed: numbers of names. command:
-- program, version and command that wrote it. comment: of the user, or empty.
CREATE TABLE generation (
    number INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    command TEXT NOT NULL,
    comment TEXT NOT NULL
);
