"""Columns of JSON, ``[1, 0, 1]`` or ``["a", "b"]``, to arrays without a Python object for each value.

Each function reads one list of plain values: numbers, literals, and strings without a backslash. Of anything else, and of
whatever is no such list, it returns -1, and the caller takes the slow way, which also finds out what is wrong.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy


cdef inline Py_ssize_t skip(const uint8_t* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    while at < size and (text[at] == 32 or 9 <= text[at] <= 13):
        at += 1
    return at


cdef inline Py_ssize_t token_end(const uint8_t* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Where the value that begins here ends; -1 if it is not plain."""
    cdef uint8_t one
    if text[at] == 34:
        at += 1
        while at < size:
            one = text[at]
            if one == 34:
                return at + 1
            if one == 92 or one < 32:
                return -1
            at += 1
        return -1
    while at < size:
        one = text[at]
        if one == 44 or one == 93 or one <= 32:
            return at
        if one == 34 or one == 91 or one == 123 or one == 125:
            return -1
        at += 1
    return -1


cdef inline Py_ssize_t opened(const uint8_t* text, Py_ssize_t size) noexcept nogil:
    """Where the first value begins, at the closing bracket if there is none; -1 if this is no list."""
    cdef Py_ssize_t at = skip(text, 0, size)
    if at >= size or text[at] != 91:
        return -1
    at = skip(text, at + 1, size)
    return at if at < size else -1


cdef inline Py_ssize_t following(const uint8_t* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """From the end of a value to where the next begins, at the end of the list 0; -1 if neither is there."""
    at = skip(text, at, size)
    if at >= size:
        return -1
    if text[at] == 93:
        return 0 if skip(text, at + 1, size) == size else -1
    if text[at] != 44:
        return -1
    at = skip(text, at + 1, size)
    return at if at < size and text[at] != 44 and text[at] != 93 else -1


def label_codes(const uint8_t[::1] column, const uint8_t[::1] tokens, const int32_t[::1] edges, uint8_t[::1] codes):
    """Which of the tokens each value is, as it is written; the number of values."""
    cdef const uint8_t* text = &column[0] if column.shape[0] else NULL
    cdef Py_ssize_t size = column.shape[0], at, end, n = 0, length
    cdef int classes = <int>edges.shape[0] - 1, code
    cdef bint found
    with nogil:
        at = opened(text, size)
        if at > 0 and text[at] == 93:
            at = 0 if skip(text, at + 1, size) == size else -1
        while at > 0:
            end = token_end(text, at, size)
            if end < 0 or n >= codes.shape[0]:
                at = -1
                break
            length, found = end - at, False
            for code in range(classes):
                if edges[code + 1] - edges[code] == length and memcmp(text + at, &tokens[edges[code]], length) == 0:
                    codes[n], found = <uint8_t>code, True
                    break
            if not found:
                at = -1
                break
            n += 1
            at = following(text, end, size)
    return n if at == 0 else -1


def integers(const uint8_t[::1] column, int64_t[::1] values):
    """Integers of up to 18 digits; the number of them."""
    cdef const uint8_t* text = &column[0] if column.shape[0] else NULL
    cdef Py_ssize_t size = column.shape[0], at, end, n = 0, i
    cdef int64_t value
    cdef bint negative
    with nogil:
        at = opened(text, size)
        if at > 0 and text[at] == 93:
            at = 0 if skip(text, at + 1, size) == size else -1
        while at > 0:
            end = token_end(text, at, size)
            if end < 0 or n >= values.shape[0]:
                at = -1
                break
            negative = text[at] == 45
            at += negative
            if end - at > 18 or end == at or (text[at] == 48 and end - at > 1):
                at = -1
                break
            value = 0
            for i in range(at, end):
                if not 48 <= text[i] <= 57:
                    at = -1
                    break
                value = 10 * value + text[i] - 48
            if at < 0:
                break
            values[n] = -value if negative else value
            n += 1
            at = following(text, end, size)
    return n if at == 0 else -1


def texts(const uint8_t[::1] column, uint32_t[::1] edges, uint8_t[::1] data):
    """Strings, one after another in `data`, between successive edges; the number of them."""
    cdef const uint8_t* text = &column[0] if column.shape[0] else NULL
    cdef Py_ssize_t size = column.shape[0], at, end, n = 0
    cdef uint32_t filled = 0
    with nogil:
        edges[0] = 0
        at = opened(text, size)
        if at > 0 and text[at] == 93:
            at = 0 if skip(text, at + 1, size) == size else -1
        while at > 0:
            end = token_end(text, at, size) if text[at] == 34 else -1
            if end < 0 or n + 1 >= edges.shape[0]:
                at = -1
                break
            memcpy(&data[filled], text + at + 1, end - at - 2)
            filled += <uint32_t>(end - at - 2)
            n += 1
            edges[n] = filled
            at = following(text, end, size)
    return n if at == 0 else -1


def distinct(const uint8_t[::1] column, uint64_t seed, int32_t[::1] table, uint32_t[::1] codes, uint32_t[::1] firsts,
             uint32_t[::1] lasts):
    """Which of the different values each is, as they are written, and where each of these stands in the column.

    `table` is filled with -1 and has a power of two of entries, more than there are values. The number of values, and
    how many different ones.
    """
    cdef const uint8_t* text = &column[0] if column.shape[0] else NULL
    cdef Py_ssize_t size = column.shape[0], at, end, n = 0, i
    cdef uint32_t different = 0
    cdef uint64_t mixed, mask = <uint64_t>table.shape[0] - 1
    cdef int32_t code
    with nogil:
        at = opened(text, size)
        if at > 0 and text[at] == 93:
            at = 0 if skip(text, at + 1, size) == size else -1
        while at > 0:
            end = token_end(text, at, size)
            if end < 0 or n >= codes.shape[0] or different >= firsts.shape[0]:
                at = -1
                break
            mixed = seed
            for i in range(at, end):
                mixed = (mixed ^ text[i]) * <uint64_t>0x9E3779B97F4A7C15
                mixed ^= mixed >> 29
            while True:
                code = table[mixed & mask]
                if code < 0:
                    table[mixed & mask] = <int32_t>different
                    firsts[different], lasts[different] = <uint32_t>at, <uint32_t>end
                    code = <int32_t>different
                    different += 1
                    break
                if lasts[code] - firsts[code] == end - at and memcmp(text + firsts[code], text + at, end - at) == 0:
                    break
                mixed += 1
            codes[n] = <uint32_t>code
            n += 1
            at = following(text, end, size)
    if at != 0:
        return -1, 0
    return n, different
