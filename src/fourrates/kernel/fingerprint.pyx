"""Keyed fingerprints of ids: 96 bits by SipHash-1-3 with its output of 128, over a block that holds the kind and the
length of the id, and then its bytes. The kinds, and the bytes of an id, are the business of
:mod:`fourrates.join.ids`; here are the loops over arrays of them.

Why 96 bits? With n ids held, an id that is not among them passes for one of them with probability n / 2**96. A
billion lookups among ten million ids go wrong with probability 1.3e-13; with 64 bits that would be 5e-4. The key keeps
whoever chooses the ids from making them collide.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_GET_SIZE
from cpython.long cimport PyLong_Check
from cpython.unicode cimport PyUnicode_Check
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

import numpy as np

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef enum Kind:
    WHOLE = 0        # of 64 bits with a sign
    HIGH = 1         # of 2**63 up to 2**64
    FRACTION = 2     # a float that is no whole number
    TEXT = 3         # in UTF-8
    BYTES = 4

KINDS = {"whole": WHOLE, "high": HIGH, "fraction": FRACTION, "text": TEXT, "bytes": BYTES}

FINGERPRINT = np.dtype([("low", np.uint64), ("high", np.uint32)])  # packed, 12 bytes

cdef packed struct Fingerprint:
    uint64_t low
    uint32_t high

cdef struct State:
    uint64_t a, b, c, d


cdef inline uint64_t turned(uint64_t value, int by) noexcept nogil:
    return (value << by) | (value >> (64 - by))


cdef inline void mix(State* s) noexcept nogil:
    """One round of SipHash."""
    s.a += s.b
    s.b = turned(s.b, 13) ^ s.a
    s.a = turned(s.a, 32)
    s.c += s.d
    s.d = turned(s.d, 16) ^ s.c
    s.a += s.d
    s.d = turned(s.d, 21) ^ s.a
    s.c += s.b
    s.b = turned(s.b, 17) ^ s.c
    s.c = turned(s.c, 32)


cdef inline void absorb(State* s, uint64_t block) noexcept nogil:
    s.d ^= block
    mix(s)
    s.a ^= block


cdef inline uint64_t block_of(const uint8_t* data, int size) noexcept nogil:
    """Up to eight bytes as a number, lowest first on every platform."""
    cdef uint64_t block = 0
    cdef int i
    for i in range(size):
        block |= <uint64_t>data[i] << (8 * i)
    return block


cdef class Hasher:
    """Fingerprints under a key of 16 bytes. Each method fills `found`, one for each id."""

    cdef State start

    def __init__(self, bytes key not None):
        if len(key) != 16:
            raise ValueError(f"a key of {len(key)} bytes, not 16")
        cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(key)
        cdef uint64_t low = block_of(data, 8), high = block_of(data + 8, 8)
        self.start.a = low ^ 0x736f6d6570736575ULL
        self.start.b = high ^ 0x646f72616e646f6dULL ^ 0xee
        self.start.c = low ^ 0x6c7967656e657261ULL
        self.start.d = high ^ 0x7465646279746573ULL

    cdef inline State begun(self, int kind, uint64_t size) noexcept nogil:
        cdef State s = self.start
        absorb(&s, <uint64_t>kind | size << 8)
        return s

    cdef inline Fingerprint ended(self, State s) noexcept nogil:
        cdef Fingerprint found
        s.c ^= 0xee
        mix(&s)
        mix(&s)
        mix(&s)
        found.low = s.a ^ s.b ^ s.c ^ s.d
        s.b ^= 0xdd
        mix(&s)
        mix(&s)
        mix(&s)
        found.high = <uint32_t>(s.a ^ s.b ^ s.c ^ s.d)
        return found

    cdef inline Fingerprint of_number(self, int kind, uint64_t number) noexcept nogil:
        cdef State s = self.begun(kind, 8)
        absorb(&s, number)
        return self.ended(s)

    cdef inline Fingerprint of_bytes(self, int kind, const uint8_t* data, Py_ssize_t size) noexcept nogil:
        cdef State s = self.begun(kind, <uint64_t>size)
        cdef Py_ssize_t at = 0
        while at + 8 <= size:
            absorb(&s, block_of(data + at, 8))
            at += 8
        if at < size:
            absorb(&s, block_of(data + at, <int>(size - at)))
        return self.ended(s)

    def integers(self, const int64_t[::1] values, bint unsigned, Fingerprint[::1] found):
        """Of integers of 64 bits; those without a sign are given by their bits."""
        cdef Py_ssize_t i
        with nogil:
            for i in range(values.shape[0]):
                found[i] = self.of_number(HIGH if unsigned and values[i] < 0 else WHOLE, <uint64_t>values[i])

    def spans(self, int kind, const int64_t[::1] edges, const uint8_t[::1] data, Fingerprint[::1] found):
        """Of stretches of `data` between successive edges, which must be in order and within it."""
        cdef Py_ssize_t i
        cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
        with nogil:
            for i in range(edges.shape[0] - 1):
                found[i] = self.of_bytes(kind, start + edges[i], <Py_ssize_t>(edges[i + 1] - edges[i]))

    def objects(self, list values not None, bytes_of, Fingerprint[::1] found):
        """Of Python objects; ``bytes_of(value, position)`` gives kind and bytes of anything that is no text, bytes or int."""
        cdef Py_ssize_t i, size = 0
        cdef const char* data
        cdef long long number
        cdef int overflow = 0
        cdef object value, saved
        for i in range(len(values)):
            value = values[i]
            if PyUnicode_Check(value):
                try:
                    data = PyUnicode_AsUTF8AndSize(value, &size)
                    found[i] = self.of_bytes(TEXT, <const uint8_t*>data, size)
                    continue
                except UnicodeEncodeError:  # half of a surrogate pair
                    saved = value.encode("utf-8", "surrogatepass")
                    found[i] = self.of_bytes(TEXT, <const uint8_t*>PyBytes_AS_STRING(saved), PyBytes_GET_SIZE(saved))
                    continue
            if PyLong_Check(value):
                number = PyLong_AsLongLongAndOverflow(value, &overflow)
                if not overflow:
                    found[i] = self.of_number(WHOLE, <uint64_t>number)
                    continue
            elif PyBytes_Check(value):
                found[i] = self.of_bytes(BYTES, <const uint8_t*>PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
                continue
            kind, saved = bytes_of(value, i)
            found[i] = self.of_bytes(<int>kind, <const uint8_t*>PyBytes_AS_STRING(saved), PyBytes_GET_SIZE(saved))
