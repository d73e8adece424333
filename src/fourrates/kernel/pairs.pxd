"""What every detector of pairs shares."""

from libc.stdint cimport int64_t, uint16_t

cdef enum:
    QUIET = 0
    WARNING = 1
    DRIFT = 2
    SHIFT = 3             # of the true classes, not of the classifier


cdef class Pairs:
    cdef public dict _codes             # from label to code
    # Not used here; a slot in the Python base would clash with the kernel's layout.
    cdef public object _labels, parameters
    cdef readonly int64_t events        # since construction or reset()
    cdef int64_t since                  # the event that opened the present warning, or -1
    cdef readonly bint drift_detected
    cdef readonly bint warning_detected
    cdef unsigned long owner            # the thread that is using it, or 0

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t size,
                         int* state) noexcept nogil
