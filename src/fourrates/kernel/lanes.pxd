"""Rows of alternatives, side by side."""

from libc.string cimport memcpy

cdef extern from "lanes.h":
    cdef enum:
        LANES "FOURRATES_LANES"
    float fourrates_log2(float x) noexcept nogil
    int fourrates_exponent(float x) noexcept nogil
    void fourrates_ratios(float p, int right, const float* growth, const float* power, float* ratio) noexcept nogil
    float fourrates_advance(float* evidence, float* age, const float* weight, const float* ratio, float gap) noexcept nogil
    void fourrates_count(const float* evidence, float* seen, float* right, const float* ratio, float one) noexcept nogil
    float fourrates_sum(const float* lane) noexcept nogil

cdef enum:
    SIZES = 6             # of a change; the second half of a row has them again, the other way or in another direction


cdef inline void expand(const float* power, float* lanes) noexcept nogil:
    """Powers by size, as the lanes have them: twice."""
    memcpy(lanes, power, SIZES * sizeof(float))
    memcpy(lanes + SIZES, power, SIZES * sizeof(float))


cdef inline int largest(const float* evidence, int first, int lanes) noexcept nogil:
    cdef int j, found = first
    for j in range(first, first + lanes):
        if evidence[j] > evidence[found]:
            found = j
    return found


cdef inline float part(const float* evidence, int first, int lanes) noexcept nogil:
    cdef int j
    cdef float found = 0.0
    for j in range(first, first + lanes):
        found += evidence[j]
    return found
