"""Columns of JSON, ``[1, 0, 1]`` or ``["a", "b"]``, to arrays without a Python object for each value.

Each function reads one list of plain values: numbers, literals, and strings without a backslash. Of anything else, and of
whatever is no such list, it returns -1, and the caller takes the slow way, which also finds out what is wrong.
:func:`gather` makes such lists of many small texts, objects with a value or a list in each field.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

cdef enum:
    DEEPEST = 32  # brackets within brackets


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
    cdef int one
    cdef int classes = <int>edges.shape[0] - 1, code
    cdef int16_t single[256]  # the tokens of one byte, which most labels are: a look in a table instead of a search
    with nogil:
        memset(single, 255, sizeof(single))
        for code in range(classes - 1, -1, -1):
            if edges[code + 1] - edges[code] == 1:
                single[tokens[edges[code]]] = code
        at = opened(text, size)
        if at > 0 and text[at] == 93:
            at = 0 if skip(text, at + 1, size) == size else -1
        while at > 0:
            end = token_end(text, at, size)
            if end < 0 or n >= codes.shape[0]:
                at = -1
                break
            length, code = end - at, -1
            if length == 1:
                code = single[text[at]]
            else:
                for one in range(classes):
                    if edges[one + 1] - edges[one] == length and memcmp(text + at, &tokens[edges[one]], length) == 0:
                        code = one
                        break
            if code < 0:
                at = -1
                break
            codes[n] = <uint8_t>code
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


cdef inline Py_ssize_t blank(const uint8_t* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Past what JSON knows as white space."""
    while at < size and (text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9):
        at += 1
    return at


cdef inline bint hexadecimal(uint8_t one) noexcept nogil:
    return 48 <= one <= 57 or 97 <= (one | 32) <= 102


cdef Py_ssize_t string_end(const uint8_t* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Where the string that begins here ends; -1 if it is none."""
    cdef uint8_t one
    cdef int i
    at += 1
    while at < size:
        one = text[at]
        if one == 34:
            return at + 1
        if one < 32:
            return -1
        if one == 92:
            at += 1
            if at >= size:
                return -1
            one = text[at]
            if one == 117:
                if at + 4 >= size:
                    return -1
                for i in range(4):
                    if not hexadecimal(text[at + 1 + i]):
                        return -1
                at += 4
            elif not (one == 34 or one == 92 or one == 47 or one == 98 or one == 102 or one == 110 or one == 114
                      or one == 116):
                return -1
        at += 1
    return -1


cdef inline Py_ssize_t digits_end(const uint8_t* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Past at least one digit; -1 if there is none."""
    cdef Py_ssize_t first = at
    while at < size and 48 <= text[at] <= 57:
        at += 1
    return at if at > first else -1


cdef Py_ssize_t number_end(const uint8_t* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Where the number that begins here ends; -1 if it is none."""
    cdef Py_ssize_t first
    if text[at] == 45:
        at += 1
    first = at
    at = digits_end(text, at, size)
    if at < 0 or (text[first] == 48 and at > first + 1):
        return -1
    if at < size and text[at] == 46:
        at = digits_end(text, at + 1, size)
        if at < 0:
            return -1
    if at < size and (text[at] | 32) == 101:
        at += 1
        if at < size and (text[at] == 43 or text[at] == 45):
            at += 1
        at = digits_end(text, at, size)
    return at


cdef inline Py_ssize_t literal_end(const uint8_t* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Where true, false or null ends; -1 if it is none of them."""
    if size - at >= 4 and (memcmp(text + at, b"true", 4) == 0 or memcmp(text + at, b"null", 4) == 0):
        return at + 4
    return at + 5 if size - at >= 5 and memcmp(text + at, b"false", 5) == 0 else -1


cdef Py_ssize_t value_end(const uint8_t* text, Py_ssize_t at, Py_ssize_t size, int depth) noexcept nogil:
    """Where the value that begins here ends, whatever it is; -1 if it is no JSON, or lies too deep."""
    cdef uint8_t one, close
    if at >= size or depth > DEEPEST:
        return -1
    one = text[at]
    if one == 34:
        return string_end(text, at, size)
    if one == 45 or 48 <= one <= 57:
        return number_end(text, at, size)
    if one != 91 and one != 123:
        return literal_end(text, at, size)
    close = one + 2
    at = blank(text, at + 1, size)
    if at < size and text[at] == close:
        return at + 1
    while True:
        if close == 125:
            at = string_end(text, at, size) if at < size and text[at] == 34 else -1
            at = blank(text, at, size) if at > 0 else -1
            if at < 0 or at >= size or text[at] != 58:
                return -1
            at = blank(text, at + 1, size)
        at = value_end(text, at, size, depth + 1)
        if at < 0:
            return -1
        at = blank(text, at, size)
        if at >= size:
            return -1
        if text[at] == close:
            return at + 1
        if text[at] != 44:
            return -1
        at = blank(text, at + 1, size)


cdef inline Py_ssize_t list_end(const uint8_t* text, Py_ssize_t at, Py_ssize_t size, int32_t* values) noexcept nogil:
    """Where the bracket that closes a list of plain values stands, and how many they are; -1 if it is none, or empty.

    That each value is one is for those to find out that read it.
    """
    values[0] = 1
    at = blank(text, at, size)
    if at < size and text[at] == 93:
        return -1
    while at < size:
        if text[at] == 93:
            return at
        if text[at] == 34:
            at = token_end(text, at, size)
            if at < 0:
                return -1
            continue
        if text[at] == 91 or text[at] == 123 or text[at] == 125:
            return -1
        values[0] += text[at] == 44
        at += 1
    return -1


cdef Py_ssize_t plain_end(const uint8_t* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Where the plain value of a field ends; -1 if it is none."""
    cdef Py_ssize_t first = at
    cdef uint8_t one
    if text[at] == 34:
        return token_end(text, at, size)
    while at < size:
        one = text[at]
        if one == 44 or one == 125 or one <= 32:
            return at if at > first else -1
        if one == 34 or one == 91 or one == 93 or one == 123 or one == 58:
            return -1
        at += 1
    return -1


cdef int wanted(const uint8_t* name, Py_ssize_t length, const uint8_t* names, const int32_t* edges,
                int fields) noexcept nogil:
    """Which of the names this is; -1 if none."""
    cdef int i
    for i in range(fields):
        if edges[i + 1] - edges[i] == length and memcmp(name, names + edges[i], length) == 0:
            return i
    return -1


cdef int32_t take_fields(const uint8_t* text, Py_ssize_t size, const uint8_t* names, const int32_t* edges, int fields,
                         uint8_t[:, ::1] out, int64_t* filled) noexcept nogil:
    """Append the values of an object's fields to the lists; how many values each field has, or -1."""
    cdef Py_ssize_t at = blank(text, 0, size), first, end
    cdef int field, seen = 0
    cdef int32_t rows = -1, values
    cdef bint is_list, listed = False
    if at >= size or text[at] != 123:
        return -1
    while True:
        at = blank(text, at + 1, size)
        end = token_end(text, at, size) if at < size and text[at] == 34 else -1
        if end < 0:
            return -1
        field = wanted(text + at + 1, end - at - 2, names, edges, fields)
        at = blank(text, end, size)
        if at >= size or text[at] != 58:
            return -1
        at = blank(text, at + 1, size)
        if at >= size:
            return -1
        if field < 0:
            at = value_end(text, at, size, 1)
        elif seen >> field & 1:  # twice: the last one counts, for those who know
            return -1
        else:
            is_list = text[at] == 91
            first = at + is_list
            if is_list:
                end = list_end(text, first, size, &values)
            else:
                end, values = plain_end(text, at, size), 1
            if end < 0 or (rows >= 0 and (values != rows or is_list != listed)):
                return -1
            rows, listed = values, is_list
            seen |= 1 << field
            memcpy(&out[field, filled[field]], text + first, end - first)
            filled[field] += end - first
            out[field, filled[field]] = 44
            filled[field] += 1
            at = end + is_list
        if at < 0:
            return -1
        at = blank(text, at, size)
        if at >= size:
            return -1
        if text[at] == 125:
            break
        if text[at] != 44:
            return -1
    if seen != (1 << fields) - 1 or blank(text, at + 1, size) != size:
        return -1
    return rows


def gather(list texts, const uint8_t[::1] names, const int32_t[::1] edges, uint8_t[:, ::1] out, int64_t[::1] filled,
           int32_t[::1] rows):
    """Lists of JSON, one for each named field, of the values that these fields have in many objects, in their order.

    A field holds a plain value, or a list of them; in one object all named fields hold the same number. Fields that are
    not named may hold any JSON. `out` has a row for each field, each with more room than all texts together and as many
    bytes as there are texts; `filled` says how much of it is the list, `rows` how many values came from each text. True
    if there are bytes beyond ASCII, of which nobody has seen yet that they are UTF-8; -1 if any text is none of these.
    """
    cdef Py_ssize_t size, i, j
    cdef const uint8_t* text
    cdef int fields = <int>edges.shape[0] - 1
    cdef uint8_t high = 0
    if not 0 < fields < 31 or out.shape[0] != fields or filled.shape[0] != fields or rows.shape[0] != len(texts):
        raise ValueError(f"{fields} fields in {out.shape[0]} lists, {len(texts)} texts in {rows.shape[0]}")
    if sum([len(one) + 1 for one in texts if type(one) is bytes]) + 2 > out.shape[1]:
        raise ValueError(f"texts that are longer than {out.shape[1]} bytes")
    for i in range(fields):
        out[i, 0], filled[i] = 91, 1
    for i in range(len(texts)):
        one = texts[i]
        if type(one) is not bytes:
            return -1
        text, size = <const uint8_t*>PyBytes_AS_STRING(one), PyBytes_GET_SIZE(one)
        rows[i] = take_fields(text, size, &names[0], &edges[0], fields, out, &filled[0])
        if rows[i] < 0:
            return -1
        for j in range(size):
            high |= text[j]
    for i in range(fields):
        out[i, filled[i] - 1] = 93
    return high >= 128
