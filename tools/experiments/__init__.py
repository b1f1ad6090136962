"""Experiments of the papers on Gompresso and TADOC, and of a thesis on LZ77: `python -m tools.experiments --help`.

Sitaridi et al., "Massively-Parallel Lossless Data Decompression" (ICPP 2016, arXiv 1606.00519). docs/benchmarks.md
says what each experiment measures, and how it differs from the paper. The thesis is that of Wesley (wesley/). tadoc.py
has the baselines of the papers on TADOC.
"""

EXPERIMENTS = ("strategies", "nesting", "sizes", "transfers", "energy", "sweeps", "wesley", "tadoc")
WITHOUT_GPU = ("sweeps", "tadoc")
"""The EXPERIMENTS that need no GPU."""
