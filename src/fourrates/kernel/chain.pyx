"""R with independent bits: its law at given points, step by step, and other statistics that share its bits."""

from libc.stdint cimport int32_t, uint8_t

import numpy as np


def passage(double decay, double rate, double lower, double upper, const double[::1] points, double[::1] mass,
            double[::1] left):
    """Let R run with independent bits, and say how much leaves the bounds at each step.

    `mass` is the law of R at the points, which ascend from 0 to 1; it is replaced by the law of what has not left after
    `len(left)` steps. `left[t]` receives what leaves at step t. Values between two points are split so that the mean is
    kept.
    """
    cdef Py_ssize_t size = points.shape[0], i, j, t
    cdef int bit
    cdef double[::1] after = np.empty(size)
    cdef int32_t[:, ::1] below = np.empty((2, size), np.int32)  # the point below where a bit leads to; -1: outside
    cdef double[:, ::1] part = np.empty((2, size))  # what goes to the point above that
    cdef double[2] chance = [1.0 - rate, rate]
    cdef double value, share, out, hair = 1e-12
    with nogil:
        for bit in range(2):
            j = 0
            for i in range(size):
                value = decay * points[i] + (1.0 - decay) * bit
                while j < size - 2 and points[j + 1] <= value:
                    j += 1
                below[bit, i] = -1 if value < lower - hair or value > upper + hair else <int32_t>j
                part[bit, i] = (value - points[j]) / (points[j + 1] - points[j])
        for t in range(left.shape[0]):
            after[:] = 0.0
            out = 0.0
            for i in range(size):
                if mass[i] < 1e-30:
                    continue
                for bit in range(2):
                    share = mass[i] * chance[bit]
                    j = below[bit, i]
                    if j < 0:
                        out += share
                        continue
                    after[j] += share * (1.0 - part[bit, i])
                    after[j + 1] += share * part[bit, i]
            mass[:] = after
            left[t] = out


def companion(const uint8_t[:, ::1] bits, const uint8_t[:, ::1] shared, const int32_t[:, ::1] between,
              const uint8_t[::1] own, double decay, double lower, double upper, double[::1] statistic,
              uint8_t[::1] out):
    """Say whether a second statistic leaves its bounds before a first one does, at the same time, or not at all.

    A row of `bits` is what the first one observes up to the moment it leaves its own bounds. The second observes those
    that are `shared`, and before the t-th of them `between[t]` bits of its own, which are taken from `own` in order.
    `statistic` is where it starts, for each row, and is replaced by where it ends. `out` receives 2, 1 or 0.
    """
    cdef Py_ssize_t row, t, e, at = 0, last = bits.shape[1] - 1
    cdef double value, gain = 1.0 - decay, low = lower - 1e-12, high = upper + 1e-12
    with nogil:
        for row in range(bits.shape[0]):
            value = statistic[row]
            out[row] = 0
            for t in range(last + 1):
                for e in range(between[row, t]):
                    value = decay * value + gain * own[at]
                    at += 1
                    if value < low or value > high:
                        out[row] = 2
                if shared[row, t]:
                    value = decay * value + gain * bits[row, t]
                    if value < low or value > high:
                        out[row] = max(out[row], 1 if t == last else 2)
            statistic[row] = value
