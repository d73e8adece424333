"""What the other compiled modules build on."""

from libc.stdint cimport int64_t, uint16_t

cdef enum:
    QUIET = 0
    WARNING = 1
    DRIFT = 2


cdef struct Grid:
    # The arrays of a Table, laid out as its docstring says.
    const float* near
    const float* far
    const float* few
    int64_t near_size, window, marks, rows, steps, counts


cdef double bound(const Grid* grid, int level, int64_t n, int64_t zeros) noexcept nogil


cdef class Table:
    cdef readonly double decay
    cdef readonly tuple levels, deep_levels
    cdef readonly object near, far, few, deep_far, deep_few
    cdef Grid grid, deep

    cdef int check(self, int level, int64_t n, int64_t ones) except -1


cdef class Pairs:
    cdef public dict _codes             # from label to code
    cdef public object _labels, parameters  # not used here; a slot in the Python base would clash with the kernel's layout
    cdef readonly int64_t events        # since construction or reset()
    cdef int64_t since                  # the event that opened the present warning, or -1
    cdef readonly bint drift_detected
    cdef readonly bint warning_detected

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t size,
                         int* state) noexcept nogil
