"""`python -m tools.experiments`: the command `experiments` of tools.bench."""

from __future__ import annotations

from tools.bench.__main__ import experiments

if __name__ == "__main__":
    experiments(prog_name="python -m tools.experiments")
