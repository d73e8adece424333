"""A detector: rules and the record of one stream."""

from libc.stdint cimport int64_t, uint16_t

from fourrates.kernel.record cimport Rules


cdef class Pairs:
    cdef public dict _codes             # from label to code
    # Not used here; a slot in the Python base would clash with the kernel's layout.
    cdef public object _labels, parameters
    cdef readonly Rules rules
    cdef object memory, work            # arrays; the record lies in the first, values derived from it in the second
    cdef char* record
    cdef char* scratch
    cdef readonly int64_t events        # since construction or reset()
    cdef int64_t since                  # the event that opened the present warning, or -1
    cdef public bint drift_detected
    cdef readonly bint warning_detected
    cdef public tuple findings          # of the last call, in order
    cdef unsigned long owner            # the thread that is using it, or 0
    cdef public bint stratified         # whether events need a stratum

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size,
                         int* state) noexcept nogil
