"""Random damage to payloads."""

from __future__ import annotations

import random


def mutate(payload: bytes, rng: random.Random) -> bytes:
    """Returns a payload with some bytes changed, cut off or inserted: mostly one, and mostly near the beginning."""
    damaged = bytearray(payload)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        place = rng.randrange(len(damaged))
        if rng.random() < 0.6:
            place = min(int(rng.expovariate(1 / 40)), len(damaged) - 1)
        kind = rng.random()
        if kind < 0.5:
            damaged[place] ^= 1 << rng.randrange(8)
        elif kind < 0.8:
            damaged[place] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif kind < 0.9:
            del damaged[place : place + rng.randint(1, 4)]
        else:
            damaged[place:place] = rng.randbytes(rng.randint(1, 4))
        if not damaged:
            break
    return bytes(damaged)
