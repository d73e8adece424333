"""One record a stream, as plain bytes, no pointers, a fixed size for given rules."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t

cdef enum:
    # The result of an event, a warning or things to report, perhaps several.
    QUIET = 0
    WARNING = 1
    DRIFT = 2             # the evidence for a change is enough
    LOOK = 4              # the look at a drift that is open has reached a decision
    SHIFT = 8             # the class mix shifted
    REPORT = DRIFT | LOOK | SHIFT

cdef enum:
    DRIFTED = 1           # flags; the last event was a drift
    ALARMED = 2           # there was a drift since the period began
    KIND = 4              # two bits, the kind of the key
    WARNED = 16           # the last event left a warning
    OPEN = 32             # a drift is open
    FLAGS = 6             # bits of them
    LINE = 64             # bytes of a line of the cache


cdef struct Head:
    int64_t key           # as an integer of 64 bits; for a key that is none, its number
    int64_t last          # the bank's event that was this stream's last
    uint64_t events       # and below them FLAGS
    uint64_t since        # the event that opened the present warning, plus one; 0 if there is none


cdef inline int64_t events_of(const Head* head) noexcept nogil:
    return <int64_t>(head.events >> FLAGS)


cdef inline int64_t since_of(const Head* head) noexcept nogil:
    """The event that opened the present warning, or -1."""
    return <int64_t>head.since - 1


cdef inline void open_warning(Head* head) noexcept nogil:
    """The latest event opened a warning, unless one is open."""
    if head.since == 0:
        head.since = head.events >> FLAGS


cdef inline void close_warning(Head* head) noexcept nogil:
    head.since = 0


cdef class Rules:
    cdef readonly int classes
    cdef readonly int64_t size            # bytes of a record

    cdef void begin(self, char* record) noexcept nogil
    cdef void set_reference(self, char* record, const float* given, const float* given_ones) noexcept nogil
    cdef void restart(self, char* record) noexcept nogil
    cdef void load_checked(self, char* record) noexcept nogil
    cdef int step(self, char* record, int truth, int pred) noexcept nogil
    cdef Py_ssize_t scan(self, char* record, char* scratch, const uint16_t* truths, const uint16_t* preds,
                         Py_ssize_t size, int* state) noexcept nogil
    cdef void fetch(self, const char* record, int truth, int pred) noexcept nogil


cdef char* aligned(const uint8_t[::1] block) noexcept
cdef object slice_of(object block, const char* record, Py_ssize_t size)
