"""The law of R with independent bits, at given points, step by step."""

from libc.stdint cimport int32_t

import numpy as np


def passage(double decay, double rate, double lower, double upper, const double[::1] points, double[::1] mass,
            double[::1] left):
    """Let R run with independent bits, and count how much leaves the bounds at each step.

    `mass` is the law of R at the points, which ascend from 0 to 1; it is replaced by the law of runs still inside after
    `len(left)` steps. `left[t]` receives the part leaving at t. Values between two points are split so that the mean is
    kept.
    """
    cdef Py_ssize_t size = points.shape[0], i, j, t
    cdef int bit
    cdef double[::1] after = np.empty(size)
    cdef int32_t[:, ::1] below = np.empty((2, size), np.int32)  # the point below the next value; -1: outside
    cdef double[:, ::1] part = np.empty((2, size))  # the part that goes to the point above that
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
