"""Rows of alternatives, side by side."""

cdef extern from "lanes.h":
    cdef enum:
        LANES "FOURRATES_LANES"
        SIZES "FOURRATES_SIZES"
    float fourrates_log2(float x) noexcept nogil
    int fourrates_exponent(float x) noexcept nogil
    void fourrates_ratios(float p, int right, const float* growth, float* ratio) noexcept nogil
    void fourrates_raise(float* ratio, const float* power) noexcept nogil
    float fourrates_advance(float* evidence, float* age, const float* weight, const float* ratio, float gap) noexcept nogil
    float fourrates_observe(float* evidence, float* age, float* seen, float* right, const float* weight,
                            const float* ratio, float gap, float one) noexcept nogil
    void fourrates_bound(const float* evidence, float* product, float most) noexcept nogil

cdef inline float sum_lanes(const float* evidence, int first, int lanes) noexcept nogil:
    cdef int j
    cdef float found = 0.0
    for j in range(first, first + lanes):
        found += evidence[j]
    return found
