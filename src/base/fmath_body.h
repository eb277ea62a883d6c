/* fmath_body.h: exp, expm1, log, log1p, pow, tanh, sigmoid, silu, erf, sin and cos in float32 as
 * fixed sequences of IEEE operations, written once over an abstract lane type. No include guard: it
 * is included once per lane type (float in fmath.h, vectors next to the kernels, CUDA text), and
 * because every primitive below is exact or correctly rounded, every instance gives equal bits for
 * every input (which NaN a NaN result is, is not promised).
 *
 * Whoever includes it has defined FMATH(name), the name given to each function; FMATH_FN, what
 * stands in front of a function ("static inline"); the types vf (f32 lanes), vi (i32 lanes,
 * wrapping) and vm (masks); and
 *   vf_set(c) vi_set(c)                     all lanes alike
 *   vf_add vf_sub vf_mul vf_div vf_fma      nearest even, denormals kept; vf_fma(a, b, c): a*b+c
 *   vf_lesser(a, b) vf_greater(a, b)        a < b ? a : b   and   a > b ? a : b: a NaN on either
 *                                           side gives b, as x86's minps and maxps do
 *   vf_lt(a, b) vf_eq(a, b) vi_eq(a, b)     masks; false for NaN
 *   vf_select(m, a, b) vi_select(m, a, b)   m ? a : b
 *   vm_any(m)                               true when some lane is set
 *   vf_bits(x) vf_of_bits(k)                reinterpretation
 *   vf_of_int(k)                            conversion of |k| < 2^24
 *   vi_add vi_sub vi_and vi_xor             wrapping
 *   vi_shl(k, n) vi_sar(k, n)               n a literal; sar keeps the sign
 *   vf_pio2_large(m, x, &r, &q)             in the lanes of m: q = fmath_pio2_large(x, &r), fmath.h
 *
 * Coefficients: tests/golden/scripts/make_fmath.py. Errors in ulp against the exact value, measured
 * over all floats (pow: 10^8 pairs) by `test_fmath full`:
 *   exp 0.90, expm1 1.5, log 0.91, log1p 1.6, pow 1.2, tanh 1.6, sigmoid 2.5, silu 3.4, erf 1.1,
 *   sin 1.6, cos 1.6.
 */

/* The bits of 1.5 * 2^23: adding it rounds |x| < 2^22 to an integer and leaves that integer in the
 * low bits. */
#define FMATH_ROUND 0x1.8p23f

FMATH_FN vf FMATH(abs)(vf x) { return vf_of_bits(vi_and(vf_bits(x), vi_set(0x7fffffff))); }

/* x with its sign flipped where sign's is set. */
FMATH_FN vf FMATH(flip)(vf x, vf sign)
{
    return vf_of_bits(vi_xor(vf_bits(x), vi_and(vf_bits(sign), vi_set((int32_t)0x80000000u))));
}

/* 2^k for -126 <= k <= 127. */
FMATH_FN vf FMATH(pow2)(vi k) { return vf_of_bits(vi_shl(vi_add(k, vi_set(127)), 23)); }

/* 2^k * e^r for |r| <= ln(2) / 2 and -150 <= k <= 128, denormal results rounded once. */
FMATH_FN vf FMATH(exp_scaled)(vf r, vi k)
{
    vf p = vf_fma(vf_set(0x1.6ab8fcp-10f), r, vf_set(0x1.123d74p-7f));
    p = vf_fma(p, r, vf_set(0x1.55585ap-5f));
    p = vf_fma(p, r, vf_set(0x1.55548cp-3f));
    p = vf_fma(p, r, vf_set(0x1.fffffcp-2f));
    p = vf_fma(p, r, vf_set(1.0f));
    p = vf_fma(p, r, vf_set(1.0f));
    vi half = vi_sar(k, 1); /* two factors: no one float holds 2^-150 or 2^128 */
    return vf_mul(vf_mul(p, FMATH(pow2)(half)), FMATH(pow2)(vi_sub(k, half)));
}

/* x = k * ln(2) + r, |r| <= ln(2) / 2 (a hair more at the edges), for |x| <= 104. */
FMATH_FN vf FMATH(exp_reduce)(vf x, vi *ret_k)
{
    vf z = vf_fma(x, vf_set(0x1.715476p+0f), vf_set(FMATH_ROUND));
    vf n = vf_sub(z, vf_set(FMATH_ROUND));
    *ret_k = vi_sub(vf_bits(z), vf_bits(vf_set(FMATH_ROUND)));
    return vf_fma(n, vf_set(0x1.05c61p-29f), vf_fma(n, vf_set(-0x1.62e43p-1f), x));
}

/* e^x. exp(0) is 1; below -103.97 it is +0, above 88.72 +inf. */
FMATH_FN vf FMATH(exp)(vf x)
{
    vi k;
    vf r = FMATH(exp_reduce)(vf_lesser(vf_set(89.0f), vf_greater(vf_set(-104.0f), x)), &k);
    return FMATH(exp_scaled)(r, k);
}

/* e^x - 1, also where x is small. */
FMATH_FN vf FMATH(expm1)(vf x)
{
    vi k;
    vf r = FMATH(exp_reduce)(vf_lesser(vf_set(89.0f), vf_greater(vf_set(-18.0f), x)), &k);
    vf p = vf_fma(vf_set(0x1.9c50e6p-13f), r, vf_set(0x1.6d4c16p-10f));
    p = vf_fma(p, r, vf_set(0x1.1113acp-7f));
    p = vf_fma(p, r, vf_set(0x1.5554eap-5f));
    p = vf_fma(p, r, vf_set(0x1.555554p-3f));
    p = vf_fma(p, r, vf_set(0.5f));
    p = vf_fma(vf_mul(r, r), p, r);
    vf s = FMATH(pow2)(vi_sub(k, vi_set(1))); /* half the scale: k reaches 128 */
    vf y = vf_fma(p, s, vf_sub(s, vf_set(0.5f)));
    return vf_select(vf_lt(FMATH(abs)(x), vf_set(0x1p-25f)), x, vf_add(y, y));
}

/* k * ln(2) + log(1 + f) for |f| <= 1/3. */
FMATH_FN vf FMATH(log_scaled)(vf f, vi k)
{
    vf p = vf_fma(vf_set(0x1.cb6878p-4f), f, vf_set(-0x1.090412p-3f));
    p = vf_fma(p, f, vf_set(0x1.c08dfap-4f));
    p = vf_fma(p, f, vf_set(-0x1.f2b09p-4f));
    p = vf_fma(p, f, vf_set(0x1.249f3cp-3f));
    p = vf_fma(p, f, vf_set(-0x1.55a01cp-3f));
    p = vf_fma(p, f, vf_set(0x1.999a24p-3f));
    p = vf_fma(p, f, vf_set(-0x1.fffeecp-3f));
    p = vf_fma(p, f, vf_set(0x1.555554p-2f));
    p = vf_fma(p, f, vf_set(-0.5f));
    vf n = vf_of_int(k), r = vf_fma(vf_mul(f, f), p, f);
    return vf_fma(n, vf_set(0x1.62e43p-1f), vf_fma(n, vf_set(-0x1.05c61p-29f), r));
}

/* x = (1 + f) * 2^k with |f| <= 1/3, exactly, for finite x > 0, denormals too. */
FMATH_FN vf FMATH(log_reduce)(vf x, vi *ret_k)
{
    vm tiny = vf_lt(x, vf_set(0x1p-126f));
    vi bits = vf_bits(vf_select(tiny, vf_mul(x, vf_set(0x1p23f)), x));
    vi k = vi_sar(vi_sub(bits, vi_set(0x3f2aaaab)), 23); /* the bits of 2/3: 2/3 <= 1 + f < 4/3 */
    *ret_k = vi_add(k, vi_select(tiny, vi_set(-23), vi_set(0)));
    return vf_sub(vf_of_bits(vi_sub(bits, vi_shl(k, 23))), vf_set(1.0f));
}

/* r, or what a logarithm of `at` is at its ends: -inf at 0, NaN below, itself for +inf and NaN. */
FMATH_FN vf FMATH(log_ends)(vf at, vf r)
{
    vf inf = vf_of_bits(vi_set(0x7f800000));
    r = vf_select(vf_lt(at, inf), r, at);
    r = vf_select(vf_lt(at, vf_set(0.0f)), vf_of_bits(vi_set(0x7fc00000)), r);
    return vf_select(vf_eq(at, vf_set(0.0f)), vf_sub(vf_set(0.0f), inf), r);
}

/* Natural logarithm. log(1) is +0. */
FMATH_FN vf FMATH(log)(vf x)
{
    vi k;
    vf f = FMATH(log_reduce)(x, &k);
    return FMATH(log_ends)(x, FMATH(log_scaled)(f, k));
}

/* log(1 + x), also where x is small. */
FMATH_FN vf FMATH(log1p)(vf x)
{
    vf u = vf_add(x, vf_set(1.0f));
    vi k = vi_sar(vi_sub(vf_bits(u), vi_set(0x3f2aaaab)), 23);
    vf s = FMATH(pow2)(vi_sub(vi_set(2), k)); /* 4 * 2^-k: k reaches 128 */
    vf f = vf_fma(vf_mul(x, vf_set(0.25f)), s, vf_fma(s, vf_set(0.25f), vf_set(-1.0f)));
    vf r = vf_select(vf_lt(FMATH(abs)(x), vf_set(0x1p-25f)), x, FMATH(log_scaled)(f, k));
    return vf_select(vf_lt(vf_set(-1.0f), x), FMATH(log_ends)(u, r),
                     FMATH(log_ends)(vf_add(x, vf_set(1.0f)), x));
}

/* Odd, within [-1, 1]. */
FMATH_FN vf FMATH(tanh)(vf x)
{
    vf t = FMATH(abs)(x), s = vf_mul(x, x);
    vf p = vf_fma(vf_set(-0x1.9921a2p-8f), s, vf_set(0x1.58e518p-6f));
    p = vf_fma(p, s, vf_set(-0x1.b91e7ep-5f));
    p = vf_fma(p, s, vf_set(0x1.110ceep-3f));
    p = vf_fma(p, s, vf_set(-0x1.55554ap-2f));
    vf small = vf_fma(vf_mul(t, s), p, t);
    vf e = FMATH(exp)(vf_add(t, t));
    vf large = vf_sub(vf_set(1.0f), vf_div(vf_set(2.0f), vf_add(e, vf_set(1.0f))));
    return FMATH(flip)(vf_select(vf_lt(t, vf_set(0.55f)), small, large), x);
}

/* 1 / (1 + e^-x), also where that is a denormal. */
FMATH_FN vf FMATH(sigmoid)(vf x)
{
    vf e = FMATH(exp)(vf_sub(vf_set(0.0f), FMATH(abs)(x)));
    vf top = vf_select(vf_lt(x, vf_set(0.0f)), e, vf_set(1.0f));
    return vf_div(top, vf_add(e, vf_set(1.0f)));
}

/* x / (1 + e^-x) with one division; -0 below -88.72, where e^-x overflows; silu(-inf) is NaN. */
FMATH_FN vf FMATH(silu)(vf x)
{
    return vf_div(x, vf_add(FMATH(exp)(vf_sub(vf_set(0.0f), x)), vf_set(1.0f)));
}

/* Odd, within [-1, 1]. */
FMATH_FN vf FMATH(erf)(vf x)
{
    vf a = FMATH(abs)(x), s = vf_mul(x, x);
    vf p = vf_fma(vf_set(0x1.4f676p-14f), s, vf_set(-0x1.a60a2ep-11f));
    p = vf_fma(p, s, vf_set(0x1.544a1ap-8f));
    p = vf_fma(p, s, vf_set(-0x1.b8011ap-6f));
    p = vf_fma(p, s, vf_set(0x1.ce2d64p-4f));
    p = vf_fma(p, s, vf_set(-0x1.81274p-2f));
    p = vf_fma(p, s, vf_set(0x1.06eba8p-3f));
    vf small = vf_fma(p, a, a);
    vf t = vf_lesser(vf_set(4.0f), a); /* erf(4) rounds to 1 */
    vf q = vf_fma(vf_set(0x1.620748p-16f), t, vf_set(-0x1.c79cd4p-12f));
    q = vf_fma(q, t, vf_set(0x1.115cbcp-8f));
    q = vf_fma(q, t, vf_set(-0x1.9b8f18p-6f));
    q = vf_fma(q, t, vf_set(0x1.bb83f8p-4f));
    q = vf_fma(q, t, vf_set(0x1.44460cp-1f));
    q = vf_fma(q, t, vf_set(0x1.093f1ep-3f));
    q = vf_fma(q, t, vf_set(-0x1.6e560ep-13f));
    vf large = vf_sub(vf_set(1.0f), FMATH(exp)(vf_sub(vf_set(0.0f), vf_add(q, t))));
    return FMATH(flip)(vf_select(vf_lt(a, vf_set(0.93f)), small, large), x);
}

/* |x| = q * pi/2 + r with |r| <= pi/4 (a little more at the edges); q is right modulo 4. */
FMATH_FN vi FMATH(pio2)(vf a, vf *ret_r)
{
    vf z = vf_fma(a, vf_set(0x1.45f306p-1f), vf_set(FMATH_ROUND));
    vf n = vf_sub(z, vf_set(FMATH_ROUND));
    vi q = vi_sub(vf_bits(z), vf_bits(vf_set(FMATH_ROUND)));
    vf r = vf_fma(n, vf_set(-0x1.921fb6p+0f), a);
    r = vf_fma(n, vf_set(0x1.777a5cp-25f), r);
    r = vf_fma(n, vf_set(0x1.ee59dap-50f), r);
    vm near = vf_lt(a, vf_set(0x1p16f));
    vm far = vf_eq(vf_select(near, vf_set(0.0f), vf_set(1.0f)), vf_set(1.0f)); /* NaN and inf too */
    if (vm_any(far)) vf_pio2_large(far, a, &r, &q);
    *ret_r = r;
    return q;
}

/* sin(r) where q is even, cos(r) where it is odd, negated where q & 2. */
FMATH_FN vf FMATH(quadrant)(vf r, vi q)
{
    vf s = vf_mul(r, r);
    vf p = vf_fma(vf_set(0x1.7c2da2p-19f), s, vf_set(-0x1.a05956p-13f));
    p = vf_fma(p, s, vf_set(0x1.111174p-7f));
    p = vf_fma(p, s, vf_set(-0x1.555556p-3f));
    vf sine = vf_fma(vf_mul(r, s), p, r);
    vf c = vf_fma(vf_set(0x1.99e80cp-16f), s, vf_set(-0x1.6c0c28p-10f));
    c = vf_fma(c, s, vf_set(0x1.55554ap-5f));
    c = vf_fma(c, s, vf_set(-0.5f));
    vf cosine = vf_fma(c, s, vf_set(1.0f));
    vf y = vf_select(vi_eq(vi_and(q, vi_set(1)), vi_set(0)), sine, cosine);
    return FMATH(flip)(y, vf_of_bits(vi_shl(q, 30)));
}

/* Right for every finite x; NaN for infinities. sin(-0) is -0. */
FMATH_FN vf FMATH(sin)(vf x)
{
    vf r;
    vi q = FMATH(pio2)(FMATH(abs)(x), &r);
    return FMATH(flip)(FMATH(quadrant)(r, q), x);
}

FMATH_FN vf FMATH(cos)(vf x)
{
    vf r;
    vi q = FMATH(pio2)(FMATH(abs)(x), &r);
    return FMATH(quadrant)(r, vi_add(q, vi_set(1)));
}

/* (*h, *l) *= (a, b) as a sum of two floats. */
FMATH_FN void FMATH(times)(vf *h, vf *l, vf a, vf b)
{
    vf p = vf_mul(*h, a);
    vf e = vf_fma(*h, a, vf_sub(vf_set(0.0f), p));
    *l = vf_fma(*l, a, vf_fma(*h, b, e));
    *h = p;
}

/* (*h, *l) = (a, *l + b + the rounding error of a + *h), where |a| >= |*h| or a is 0. */
FMATH_FN void FMATH(plus)(vf *h, vf *l, vf a, vf b)
{
    vf s = vf_add(a, *h);
    *l = vf_add(vf_add(vf_sub(*h, vf_sub(s, a)), *l), b);
    *h = s;
}

/* log(x) of a finite x > 0 as a sum of two floats, to about 2^-33 of itself: it is
 * 2 atanh(f / (2 + f)). */
FMATH_FN vf FMATH(log_pair)(vf x, vf *ret_low)
{
    vi k;
    vf f = FMATH(log_reduce)(x, &k), n = vf_of_int(k), zero = vf_set(0.0f);
    vf d = vf_add(f, vf_set(2.0f)), d_low = vf_sub(f, vf_sub(d, vf_set(2.0f)));
    vf q = vf_div(f, d), neg = vf_sub(zero, q);
    vf q_low = vf_div(vf_fma(neg, d_low, vf_fma(neg, d, f)), d);
    vf s = q, s_low = q_low;
    FMATH(times)(&s, &s_low, q, q_low);
    vf p = vf_fma(vf_set(0x1.eda6ccp-4f), s, vf_set(0x1.23e8c4p-3f));
    p = vf_mul(vf_fma(p, s, vf_set(0x1.999be0p-3f)), s);
    vf h = p, l = vf_set(-0x1.e08780p-26f); /* c0 and the tail of 1/3 */
    FMATH(plus)(&h, &l, vf_set(0x1.555556p-2f), zero);
    FMATH(times)(&h, &l, s, s_low);
    FMATH(times)(&h, &l, q, q_low);
    FMATH(plus)(&h, &l, q, q_low);
    h = vf_add(h, h);
    l = vf_add(l, l);
    vf ln2 = vf_set(0x1.62e43p-1f), m = vf_mul(n, ln2);
    FMATH(plus)(&h, &l, m, vf_fma(n, vf_set(-0x1.05c61p-29f), vf_fma(n, ln2, vf_sub(zero, m))));
    *ret_low = l;
    return h;
}

/* 1 where a >= 0 is an integer, else 0. */
FMATH_FN vf FMATH(is_integer)(vf a)
{
    vf round = vf_sub(vf_add(a, vf_set(0x1p23f)), vf_set(0x1p23f));
    vf same = vf_select(vf_eq(round, a), vf_set(1.0f), vf_set(0.0f));
    return vf_select(vf_lt(a, vf_set(0x1p23f)), same, vf_set(1.0f));
}

/* |x|^y with the sign and NaN of C's pow: pow(x, 0) and pow(1, y) are 1 for any operand. */
FMATH_FN vf FMATH(pow)(vf x, vf y)
{
    vf zero = vf_set(0.0f), one = vf_set(1.0f), nan = vf_of_bits(vi_set(0x7fc00000));
    vf a = FMATH(abs)(x), b = FMATH(abs)(y), l;
    vf h = FMATH(log_ends)(a, FMATH(log_pair)(a, &l));
    l = vf_select(vf_lt(FMATH(abs)(h), vf_set(128.0f)), l, zero);
    vf p = vf_mul(y, h), e = vf_fma(y, l, vf_fma(y, h, vf_sub(zero, p)));
    e = vf_select(vf_lt(FMATH(abs)(p), vf_set(104.0f)), e, zero);
    vi k;
    vf r = FMATH(exp_reduce)(vf_lesser(vf_set(89.0f), vf_greater(vf_set(-104.0f), p)), &k);
    vf power = FMATH(exp_scaled)(vf_add(r, e), k);
    vf odd = vf_mul(FMATH(is_integer)(b), vf_sub(one, FMATH(is_integer)(vf_mul(b, vf_set(0.5f)))));
    vm negative = vf_lt(x, zero);
    vf root = vf_select(vf_eq(FMATH(is_integer)(b), one), power, nan); /* of a negative finite x */
    root = vf_select(vf_lt(a, vf_of_bits(vi_set(0x7f800000))), root, power);
    power = vf_select(negative, root, power);
    power = vf_select(vf_eq(odd, one), FMATH(flip)(power, x), power);
    power = vf_select(vf_eq(a, one),
                      vf_select(vf_eq(b, vf_of_bits(vi_set(0x7f800000))), one, power), power);
    return vf_select(vf_eq(x, one), one, vf_select(vf_eq(y, zero), one, power));
}

#undef FMATH_ROUND
