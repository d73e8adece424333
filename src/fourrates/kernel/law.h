/* The loop in which a table of the exact law spends its time. Nothing is fused, so that wider vectors give the same bits. */
#include <stddef.h>

#include "vectors.h"

/* If the system chooses at load time among versions of a function, one for wider vectors is offered. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define FOURRATES_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define FOURRATES_WIDE
#endif

/* Two neighbouring rows into the next, the second one moved up by a part of a point. */
FOURRATES_WIDE static void fourrates_blend(float *FOURRATES_APART out, const float *FOURRATES_APART a,
                                           const float *FOURRATES_APART b, ptrdiff_t size, float c0, float c1, float c2)
{
    for (ptrdiff_t i = 0; i < size; i++)
        out[i] = c0 * a[i] + c1 * b[i + 1] + c2 * b[i];
}
