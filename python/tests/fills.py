"""The numbers of recorded cases, which are computed from their names instead of stored."""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _bits(name, count):
    start = 0xCBF29CE484222325
    for byte in name.encode():
        start = ((start ^ byte) * 0x100000001B3) % 2**64
    with np.errstate(over="ignore"):
        z = np.uint64(start) + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def filled(entry, key="fill"):
    """The array of an entry with a shape and either bounds of whole numbers or a bound of floats."""
    shape = entry["shape"]
    bits = _bits(entry[key], int(np.prod(shape, dtype=np.int64)))
    if "low" in entry:
        span = np.uint64(entry["high"] - entry["low"])
        return (entry["low"] + ((bits >> np.uint64(33)) % span).astype(np.int64)).reshape(shape)
    unit = (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    values = (unit - np.float32(0.5)) * np.float32(2 * entry.get("bound", 1.0))
    offset = entry.get("offset", 0.0)
    if offset:
        values = np.float32(offset) + values
    return values.astype(np.float32).reshape(shape)
