/* rope_table.c: double arithmetic with + - * / only, no contraction: equal on every IEEE machine.
 * Errors stay near 1e-15, far below the float32 that is stored. Scalings as the transformers
 * library defines "linear" and "llama3". */
#include "lm/rope_table.h"
#include <math.h>
#include "base/fp.h"

#define PI 0x1.921fb54442d18p1
#define LN2 0x1.62e42fefa39efp-1
#define PIO2_HI 0x1.921fb54400000p0 /* 33 bits: k * PIO2_HI is exact for k < 2^20 */
#define PIO2_LO 0x1.0b4611a626331p-34

/* ln(x) for x >= 1: x = m 2^e, ln m = 2 atanh((m - 1) / (m + 1)). */
static double log_of(double x)
{
    int e = 0;
    while (x >= 1.5) {
        x *= 0.5;
        e++;
    }
    double t = (x - 1) / (x + 1), t2 = t * t, sum = 0, power = t;
    for (int k = 1; k < 60; k += 2) {
        sum += power / k;
        power *= t2;
    }
    return 2 * sum + e * LN2;
}

/* e^-x for x >= 0: halved n times below 1/16, Taylor, squared n times. */
static double exp_minus(double x)
{
    int n = 0;
    double term = 1, sum = 1;
    while (x > 0.0625) {
        x *= 0.5;
        n++;
    }
    for (int k = 1; k < 14; k++) {
        term *= -x / k;
        sum += term;
    }
    while (n--) sum *= sum;
    return sum;
}

/* cos and sin of x, 0 <= x < 2^20: reduced to |r| <= pi/4, Taylor. */
static void cos_sin(double x, double *ret_cos, double *ret_sin)
{
    double k = rint(x * (2 / PI)), r = (x - k * PIO2_HI) - k * PIO2_LO, r2 = r * r;
    double c = 1, s = r, cos_term = 1, sin_term = r;
    for (int i = 1; i < 12; i++) {
        cos_term *= -r2 / ((2 * i - 1) * (2 * i));
        sin_term *= -r2 / ((2 * i) * (2 * i + 1));
        c += cos_term;
        s += sin_term;
    }
    int quarter = (int)((int64_t)k & 3);
    *ret_cos = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
    *ret_sin = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
}

static double scaled(const lm_config *c, double f)
{
    if (c->scaling == ROPE_LINEAR) return f / c->scale_factor;
    if (c->scaling == ROPE_PLAIN) return f;
    double wave = 2 * PI / f, longest = (double)c->original_context / c->low_freq_factor,
           shortest = (double)c->original_context / c->high_freq_factor;
    if (wave > longest) return f / c->scale_factor;
    if (wave < shortest) return f;
    double smooth = ((double)c->original_context / wave - c->low_freq_factor) /
                    (c->high_freq_factor - c->low_freq_factor);
    return (1 - smooth) * f / c->scale_factor + smooth * f;
}

void rope_table_fill(const lm_config *c, int64_t n, float *table)
{
    AUTO(fp_state) fp = fp_enter();
    int64_t half = c->head_dim / 2;
    double log_theta = log_of(c->rope_theta);
    for (int64_t i = 0; i < half; i++) {
        double f = scaled(c, exp_minus(log_theta * 2 * (double)i / (double)c->head_dim));
        for (int64_t p = 0; p < n; p++) {
            double cosine, sine;
            cos_sin((double)p * f, &cosine, &sine);
            table[p * 2 * half + i] = (float)cosine;
            table[p * 2 * half + half + i] = (float)sine;
        }
    }
}
