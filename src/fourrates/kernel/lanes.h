/* Alternatives side by side, as arithmetic on rows of LANES numbers, in single precision.

   Every loop is over a fixed number of lanes, so that a compiler turns it into vector instructions; sums are taken in a
   fixed order and nothing is fused, so that every platform gives the same bits. The logarithm and the exponential are
   polynomials of our own for the same reason. */
#include <stdint.h>
#include <string.h>

#include "vectors.h"

#define FOURRATES_LANES 12
#define FOURRATES_SIZES 6  /* of a change; the second half of a row has them again, the other way or in another direction */

static inline float fourrates_log2(float x)
{
    /* x > 0 and normal, by its exponent, and atanh's series for a mantissa in [1/sqrt 2, sqrt 2). */
    uint32_t bits;
    memcpy(&bits, &x, 4);
    int32_t exponent = (int32_t)(bits - 0x3f3504f3u) >> 23;
    bits -= (uint32_t)exponent << 23;
    float mantissa;
    memcpy(&mantissa, &bits, 4);
    float s = (mantissa - 1.0f) / (mantissa + 1.0f), z = s * s;
    float series = 2.885390082f + z * (0.961796694f + z * (0.577078016f + z * (0.412198583f + z * 0.320598898f)));
    return (float)exponent + s * series;
}

static inline int fourrates_exponent(float x)
{
    /* x > 0 and normal; the power of two at or below it. */
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (int)(bits >> 23) - 127;
}

static inline float fourrates_exp2(float x)
{
    /* |x| < 126: a power of two, and a polynomial for the rest in [-1/2, 1/2]. */
    float whole = (float)(int32_t)(x + (x < 0.0f ? -0.5f : 0.5f)), rest = x - whole;
    float power = 1.0f + rest * (0.693147181f + rest * (0.240226507f + rest * (0.0555041087f
                + rest * (0.00961812911f + rest * (0.00133335581f + rest * 0.000154035304f)))));
    uint32_t bits = (uint32_t)((int32_t)whole + 127) << 23;
    float scale;
    memcpy(&scale, &bits, 4);
    return power * scale;
}

/* The likelihood ratios of an observation, odds multiplied by 1 + growth against probability p of a right one. */
static inline void fourrates_ratios(float p, int right, const float *FOURRATES_APART growth, float *FOURRATES_APART ratio)
{
    float lift = right ? 1.0f : 0.0f;  /* a factor, not a branch, so that the divisions are done side by side */
    for (int j = 0; j < FOURRATES_LANES; j++)
        ratio[j] = (1.0f + lift * growth[j]) * (1.0f / (1.0f + p * growth[j]));
}

/* Ratios, each raised to the power of its size. */
static inline void fourrates_raise(float *FOURRATES_APART ratio, const float *FOURRATES_APART power)
{
    float powers[FOURRATES_LANES];
    memcpy(powers, power, FOURRATES_SIZES * sizeof(float));
    memcpy(powers + FOURRATES_SIZES, power, FOURRATES_SIZES * sizeof(float));
    for (int j = 0; j < FOURRATES_LANES; j++)
        ratio[j] = fourrates_exp2(powers[j] * fourrates_log2(ratio[j]));
}

static inline float fourrates_sum(const float *lane)
{
    float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int j = 0; j < FOURRATES_LANES; j += 4)
        for (int i = 0; i < 4; i++)
            part[i] += lane[j + i];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

/* Shiryaev and Roberts: `gap` events have passed since the last one that concerned these lanes, itself included; at each
   of them a change may have begun. `age` is evidence times events since the change began. */
static inline float fourrates_advance(float *FOURRATES_APART evidence, float *FOURRATES_APART age,
                                      const float *FOURRATES_APART weight, const float *FOURRATES_APART ratio, float gap)
{
    float ages = 0.5f * gap * (gap + 1.0f);
    for (int j = 0; j < FOURRATES_LANES; j++) {
        float old = evidence[j];
        evidence[j] = (old + gap * weight[j]) * ratio[j];
        age[j] = (age[j] + gap * old + ages * weight[j]) * ratio[j];
    }
    return fourrates_sum(evidence);
}

/* Likewise, and evidence times observations, and times right ones, since the change began. */
static inline float fourrates_observe(float *FOURRATES_APART evidence, float *FOURRATES_APART age,
                                      float *FOURRATES_APART n_since, float *FOURRATES_APART correct_since,
                                      const float *FOURRATES_APART weight, const float *FOURRATES_APART ratio, float gap,
                                      float one)
{
    float ages = 0.5f * gap * (gap + 1.0f);
    for (int j = 0; j < FOURRATES_LANES; j++) {
        float old = evidence[j], now = (old + gap * weight[j]) * ratio[j];
        evidence[j] = now;
        age[j] = (age[j] + gap * old + ages * weight[j]) * ratio[j];
        n_since[j] = n_since[j] * ratio[j] + now;
        correct_since[j] = correct_since[j] * ratio[j] + one * now;
    }
    return fourrates_sum(evidence);
}

/* Evidence times a number of events is at most evidence times the number there were, and a little for rounding.
   If a lane has no weight, evidence fades to below the smallest float and the product, a larger number, gets there later.
   It would be left behind, and grow alone as soon as the ratios are above 1. */
static inline void fourrates_bound(const float *FOURRATES_APART evidence, float *FOURRATES_APART product, float most)
{
    most *= 1.005f;
    for (int j = 0; j < FOURRATES_LANES; j++)
        product[j] = product[j] < most * evidence[j] ? product[j] : most * evidence[j];
}
