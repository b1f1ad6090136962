"""Experiments of the Gompresso paper and of a thesis on LZ77, on a GPU: `python -m tools.bench experiments --help`.

Sitaridi et al., "Massively-Parallel Lossless Data Decompression" (ICPP 2016, arXiv 1606.00519). docs/benchmarks.md
says what each experiment measures, and how it differs from the paper. The thesis is that of Wesley (wesley/).
"""

EXPERIMENTS = ("strategies", "nesting", "sizes", "transfers", "energy", "sweeps", "wesley")
WITHOUT_GPU = ("sweeps",)
"""Those of EXPERIMENTS that compute sizes, and need no GPU."""
