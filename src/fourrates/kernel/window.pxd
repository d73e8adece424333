"""The law of a window, for the other compiled modules."""

from libc.stdint cimport int64_t

cdef enum:
    LONGEST = 255  # observations in a window: a rate remembers 256 bits


cdef double EXACTLY


cdef double chance(int width, int64_t n, int64_t ones, int value, double level) noexcept nogil

cdef void quick(int width, int64_t n, int64_t ones, int levels, const double* level, int* found) noexcept nogil

cdef int critical(int width, int64_t n, int64_t ones, double level) noexcept nogil


cdef inline int weight(int width) noexcept nogil:
    """What a one in the older half adds to the value of a window; one in the newer half adds 1 more."""
    return width // 2 + 1


cdef inline int largest(int width) noexcept nogil:
    """The value of a window of ones."""
    return width * weight(width) + width // 2
