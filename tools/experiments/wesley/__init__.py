"""Wesley's LZ77 for GPUs, as an experiment: triples, encoded and decoded in parallel and serially.

Kayla Wesley, "Massively Parallel LZ77 Compression and Decompression on the GPU" (Texas State University, 2022).

The format: the size of the text (u64), then triples of 3 bytes. (d, l, v) with d > 0 stands for l bytes that begin d
bytes before, and the byte v; (0, b, a) stands for the bytes a and b. Distances are 1 to 255, lengths 2 to 255; the
source may overlap the match. The last triple may stand for one byte too many, which is dropped. The encoder takes the
longest match at each position, of these the farthest.

- `serial`: an encoder and a decoder for one CPU thread (triples.cpp).
- `encoder`, `decoder`: the same on a device, in phases. The bytes are the same.
- `graphs`, `made_data`: make four of the kinds of data that the thesis measures.
- `measure`: the tables.
"""
