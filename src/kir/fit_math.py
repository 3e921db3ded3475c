#!/usr/bin/env python3
"""Fits the polynomials of src/kir/math.cpp and prints src/kir/math_tables.h (needs mpmath).

Each is close to the minimax approximation (Lawson's algorithm) of a smooth function on an interval, weighted so that the error of the final
result is relative. Coefficients of f32 are rounded one by one, lowest power first, and the rest is fitted again around each.
"""
import mpmath as mp

mp.mp.dps = 70
GRID = 200


def least_squares(grid, values, weights, powers):
    n = len(powers)
    columns = [[x ** p for x in grid] for p in powers]
    matrix, right = mp.matrix(n, n), mp.matrix(n, 1)
    for i in range(n):
        weighted = [c * w for c, w in zip(columns[i], weights)]
        right[i] = mp.fdot(weighted, values)
        for j in range(i, n):
            matrix[i, j] = matrix[j, i] = mp.fdot(weighted, columns[j])
    return list(mp.lu_solve(matrix, right))


def lawson(grid, values, weights, powers, rounds=12):
    """Least squares whose weights grow where the error is large: tends to the minimax polynomial, whatever the powers."""
    share = [mp.mpf(1)] * len(grid)
    best = None
    for _ in range(rounds):
        coefficients = least_squares(grid, values, [s * w * w for s, w in zip(share, weights)], powers)
        errors = [abs(mp.fsum(c * x ** p for c, p in zip(coefficients, powers)) - y) * w for x, y, w in zip(grid, values, weights)]
        if best is None or max(errors) < best[1]:
            best = coefficients, max(errors)
        share = [s * e for s, e in zip(share, errors)]
        total = mp.fsum(share) / len(share)
        share = [s / total for s in share]
    return best[0]


def rounded(value, bits):
    mantissa, exponent = mp.frexp(value)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)


def fit(function, weight, low, high, terms, bits):
    low, high = mp.mpf(low), mp.mpf(high)
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * GRID)) for k in range(GRID)]
    values, weights = [function(x) for x in grid], [abs(weight(x)) for x in grid]
    fixed = []
    while len(fixed) < terms:
        rest = [y - mp.fsum(c * x ** k for k, c in enumerate(fixed)) for x, y in zip(grid, values)]
        found = lawson(grid, rest, weights, list(range(len(fixed), terms)))
        # In f64 the coefficients' rounding is far below the goal: one fit will do.
        fixed += [rounded(c, bits) for c in (found if bits == 53 else found[:1])]
    final = max(abs(mp.fsum(c * x ** k for k, c in enumerate(fixed)) - y) * w for x, y, w in zip(grid, values, weights))
    return fixed, final


def root(v):
    return mp.sqrt(v)


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.01")
S_MAX2 = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.001")
QUARTER = (mp.pi / 4 + mp.mpf("0.02")) ** 2


# name, comment, function, weight, (low, high), then terms and interval for each dtype.
FITS = [
    ("Exp", "exp(r) = 1 + r + r^2 p(r), |r| <= ln(2)/2", lambda r: (mp.expm1(r) - r) / r ** 2, lambda r: r, {"F32": (-HALF_LN2, HALF_LN2, 5), "F64": (-HALF_LN2, HALF_LN2, 11)}),
    ("Log", "log((1+s)/(1-s)) = 2s + s^3 p(s^2), sqrt(1/2) <= (1+s)/(1-s) <= sqrt(2)", lambda v: (2 * mp.atanh(root(v)) / root(v) - 2) / v, lambda v: v,
     {"F32": (mp.mpf(10) ** -8, S_MAX2, 3), "F64": (mp.mpf(10) ** -8, S_MAX2, 7)}),
    ("Atanh", "atanh(s) = s + s^3/3 + s^5 p(s^2), the same s", lambda v: (mp.atanh(root(v)) / root(v) - 1 - v / 3) / v ** 2, lambda v: v ** 2,
     {"F32": (mp.mpf(10) ** -8, S_MAX2, 3), "F64": (mp.mpf(10) ** -8, S_MAX2, 8)}),
    ("Sin", "sin(r) = r + r^3 p(r^2), |r| <= pi/4", lambda v: (mp.sin(root(v)) / root(v) - 1) / v, lambda v: v, {"F32": (mp.mpf(10) ** -8, QUARTER, 3), "F64": (mp.mpf(10) ** -8, QUARTER, 7)}),
    ("Cos", "cos(r) = 1 - r^2/2 + r^4 p(r^2), |r| <= pi/4", lambda v: (mp.cos(root(v)) - 1 + v / 2) / v ** 2, lambda v: v ** 2,
     {"F32": (mp.mpf(10) ** -8, QUARTER, 3), "F64": (mp.mpf(10) ** -8, QUARTER, 7)}),
    ("Tanh", "tanh(x) = x + x^3 p(x^2), |x| <= 0.55", lambda v: (mp.tanh(root(v)) / root(v) - 1) / v, lambda v: v,
     {"F32": (mp.mpf(10) ** -8, mp.mpf("0.3026"), 5), "F64": (mp.mpf(10) ** -8, mp.mpf("0.3026"), 12)}),
    ("Erf", "erf(x) = x + x p(x^2), |x| <= 0.9", lambda v: mp.erf(root(v)) / root(v) - 1, lambda v: mp.mpf(1),
     {"F32": (mp.mpf(10) ** -8, mp.mpf("0.811"), 6), "F64": (mp.mpf(10) ** -8, mp.mpf("0.811"), 12)}),
    # About t = 1, where most precision is asked for and rounded coefficients then do least harm.
    ("Erfc", "log(erfc(t)) = p(t - 1), 0.9 <= t <= 4 (f64: 6)", lambda u: mp.log(mp.erfc(u + 1)), lambda u: mp.erfc(u + 1),
     {"F32": (mp.mpf("-0.11"), 3, 7), "F64": (mp.mpf("-0.11"), 5, 19)}),
]


def words(width, count):
    """2/pi as `count` words, after one word of zeros."""
    mp.mp.dps = 500
    bits = int(mp.floor(mp.mpf(2) / mp.pi * mp.mpf(2) ** (width * (count - 1))))
    mp.mp.dps = 70
    return [0] + [(bits >> (width * (count - 2 - k))) & (2 ** width - 1) for k in range(count - 1)]


def as_signed(word, width):
    return word - 2 ** width if word >> (width - 1) else word


def main():
    print("// Made by src/kir/fit_math.py: minimax polynomials, lowest power first, and the bits of 2/pi.")
    print("#pragma once\n\n#include <cstdint>\n\nnamespace pantala::kir::math::tables {\n")
    for name, comment, function, weight, variants in FITS:
        for dtype, (low, high, terms) in variants.items():
            coefficients, error = fit(function, weight, low, high, terms, 24 if dtype == "F32" else 53)
            print(f"// {comment}; error {float(error):.1e}, 2^{float(mp.log(error, 2)):.1f}")
            print(f"inline constexpr double k{name}{dtype}[] = {{{', '.join(float(c).hex() for c in coefficients)}}};\n", flush=True)
    print("// Words of 2/pi, the first one before the binary point.")
    print(f"inline constexpr std::int64_t kTwoOverPiF32[] = {{{', '.join(str(as_signed(w, 32)) for w in words(32, 8))}}};")
    print(f"inline constexpr std::int64_t kTwoOverPiF64[] = {{{', '.join(str(as_signed(w, 64)) for w in words(64, 20))}}};\n")
    print("}  // namespace pantala::kir::math::tables")


if __name__ == "__main__":
    main()
