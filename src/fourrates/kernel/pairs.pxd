"""The part that every detector of pairs shares."""

from libc.stdint cimport int64_t, uint16_t

cdef enum:
    # The result of an event, a warning or things to report, perhaps several.
    QUIET = 0
    WARNING = 1
    DRIFT = 2             # the evidence for a change is enough
    LOOK = 4              # the look at a drift that is open has reached a decision
    SHIFT = 8             # the class mix shifted
    REPORT = DRIFT | LOOK | SHIFT


cdef class Pairs:
    cdef public dict _codes             # from label to code
    # Not used here; a slot in the Python base would clash with the kernel's layout.
    cdef public object _labels, parameters
    cdef readonly int64_t events        # since construction or reset()
    cdef int64_t since                  # the event that opened the present warning, or -1
    cdef public bint drift_detected
    cdef readonly bint warning_detected
    cdef public tuple findings          # of the last call, in order
    cdef unsigned long owner            # the thread that is using it, or 0
    cdef bint stratified                # whether events need a stratum

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size,
                         int* state) noexcept nogil
