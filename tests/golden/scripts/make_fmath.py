#!/usr/bin/env python3
"""Derives the coefficients of src/base/fmath_body.h (needs mpmath). Prints C hex floats.

Each row is a weighted minimax fit (Remez exchange) of g on [lo, hi] by a polynomial in x. The
coefficients are rounded to float one at a time, lowest power first, and the rest is fitted again
after each, so that the rounding of one is made up for by the others.
"""
import struct
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, exp, expm1, log, log1p, tanh, erf, erfc, sin, sqrt, atanh

mp.prec = 160


def f32(x):
    return mpf(struct.unpack("<f", struct.pack("<f", float(x)))[0])


def remez(g, w, powers, lo, hi):
    n = len(powers)
    points = [(lo + hi) / 2 + (hi - lo) / 2 * cos(pi * (2 * i + 1) / (2 * n + 2)) for i in range(n, -1, -1)]
    for _ in range(12):
        rows = matrix(n + 1, n + 1)
        right = matrix(n + 1, 1)
        for i, x in enumerate(points):
            for j, p in enumerate(powers):
                rows[i, j] = w(x) * x**p
            rows[i, n] = (-1) ** i
            right[i] = w(x) * g(x)
        c = lu_solve(rows, right)
        err = lambda x: w(x) * (g(x) - sum(c[j] * x**p for j, p in enumerate(powers)))
        grid = [lo + (hi - lo) * i / 600 for i in range(601)]
        vals = [err(x) for x in grid]
        peaks = []
        for i, v in enumerate(vals):
            left = vals[i - 1] if i else mpf(0)
            after = vals[i + 1] if i < 600 else mpf(0)
            if (v > 0 and v >= left and v >= after) or (v < 0 and v <= left and v <= after):
                if peaks and (vals[peaks[-1]] > 0) == (v > 0):
                    if abs(v) > abs(vals[peaks[-1]]):
                        peaks[-1] = i
                else:
                    peaks.append(i)
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(vals[peaks[0]]) < abs(vals[peaks[-1]]) else -1)
        if len(peaks) < n + 1:
            break
        points = [grid[i] for i in peaks]
    return [c[j] for j in range(n)], max(abs(v) for v in vals)


def fit(name, g, w, degree, lo, hi, fixed=()):
    lo, hi = mpf(lo), mpf(hi)
    done = [mpf(c) for c in fixed]
    for k in range(len(done), degree + 1):
        rest = lambda x: g(x) - sum(c * x**i for i, c in enumerate(done))
        c, e = remez(rest, w, list(range(k, degree + 1)), lo, hi)
        done.append(f32(c[0]))
    worst = max(abs(w(x) * (g(x) - sum(c * x**i for i, c in enumerate(done))))
                for x in [lo + (hi - lo) * i / 3000 for i in range(3001)])
    print("%s: relative error 2^%.2f" % (name, float(log(worst) / log(2))))
    for i, c in enumerate(done):
        print("  c%d = %sf  /* %.9g */" % (i, float(c).hex(), float(c)))


def pieces(name, x, n):
    print(name + ": " + ", ".join(float(p).hex() + "f" for p in split(x, n)))


def split(x, n):
    out = []
    for _ in range(n):
        out.append(f32(x))
        x -= out[-1]
    return out


def main():
    half = log(mpf(2)) / 2 * mpf("1.001")
    tiny = mpf(2) ** -40
    safe = lambda x: x if abs(x) > tiny else tiny
    pieces("ln2", log(mpf(2)), 2)
    pieces("log2e", 1 / log(mpf(2)), 1)
    pieces("pi/2", pi / 2, 3)
    pieces("2/pi", 2 / pi, 1)
    fit("exp", lambda x: (lambda r: (expm1(r) - r) / r**2)(safe(x)), lambda r: r**2 / exp(r), 4, -half, half)
    fit("log", lambda x: (lambda f: (log1p(f) - f) / f**2)(safe(x)),
        lambda x: (lambda f: f**2 / log1p(f))(safe(x)), 9, mpf(-1) / 3, mpf(1) / 3, [-0.5])
    fit("expm1", lambda x: (lambda r: (expm1(r) - r) / r**2)(safe(x)),
        lambda x: (lambda r: r**2 / expm1(r))(safe(x)), 5, -half, half)
    fit("atanh series of pow, of q^2", lambda x: (lambda s: (atanh(sqrt(s)) / sqrt(s) - 1) / s - mpf(1) / 3)(abs(safe(x))),
        lambda s: s, 3, 0, mpf("0.0401"))
    pieces("1/3", mpf(1) / 3, 2)
    fit("tanh, of x^2", lambda x: (lambda s: (tanh(sqrt(s)) / sqrt(s) - 1) / s)(abs(safe(x))),
        lambda s: s * sqrt(abs(safe(s))) / tanh(sqrt(abs(safe(s)))), 4, 0, mpf("0.3025"))
    fit("erf small, of x^2", lambda x: (lambda s: erf(sqrt(s)) / sqrt(s) - 1)(abs(safe(x))),
        lambda x: (lambda s: sqrt(s) / erf(sqrt(s)))(abs(safe(x))), 6, 0, mpf("0.8649"))
    fit("erf large, -log(erfc(t)) - t", lambda t: -log(erfc(t)) - t, lambda t: erfc(t) / erf(t), 7, mpf("0.92"), mpf(4))
    fit("sin, of x^2", lambda x: (lambda s: (sin(sqrt(s)) / sqrt(s) - 1) / s)(abs(safe(x))),
        lambda s: s * sqrt(abs(safe(s))) / sin(sqrt(abs(safe(s)))), 3, 0, mpf("0.6170"))
    fit("cos, of x^2", lambda x: (lambda s: (cos(sqrt(s)) - 1) / s)(abs(safe(x))),
        lambda s: s / cos(sqrt(s)), 3, 0, mpf("0.6170"))


main()
