"""Labels that are class codes already: checked while they are copied, for an array may change while it is read."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused Integer:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t


def small_codes(const Integer[::1] values, uint64_t classes, uint16_t[::1] codes):
    """Copy integers below `classes` into `codes`; return the position of the first other value, or -1.

    Every value is read once. What is checked is what was copied, and not what the array holds by then.
    """
    cdef Py_ssize_t i, size = values.shape[0]
    cdef uint64_t seen = 0, value
    with nogil:
        for i in range(size):
            value = <uint64_t>values[i]  # a negative one turns into a huge one
            seen |= value
            codes[i] = <uint16_t>value
    if seen >= classes:  # no value exceeds the union of bits
        for i in range(size):
            if codes[i] >= classes or <uint64_t>values[i] >= classes:
                return i
        if seen > 0xffff:  # one that has left the array since, and of which the copy has the low bits only
            return 0
    return -1


def check_codes(const uint16_t[::1] codes, uint64_t classes):
    """The position of the first code that is none of a class, or -1."""
    cdef Py_ssize_t i
    for i in range(codes.shape[0]):
        if codes[i] >= classes:
            return i
    return -1
