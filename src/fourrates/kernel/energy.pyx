"""The best split of a segment by its energy statistic, the loops behind :class:`fourrates.distribution.EDivisive`.

A split of a segment is a pair (tau, kappa), and compares the rows before tau with those from tau up to kappa.
"""

from libc.math cimport INFINITY, fabs, pow, sqrt


cdef inline double distance(const double *a, const double *b, Py_ssize_t size, double alpha) noexcept nogil:
    cdef Py_ssize_t i
    cdef double sum = 0.0
    if size == 1 and alpha == 1:
        return fabs(a[0] - b[0])
    for i in range(size):
        sum += (a[i] - b[i]) * (a[i] - b[i])
    if alpha == 1:
        return sqrt(sum)
    return sum if alpha == 2 else pow(sum, alpha / 2)


def best_split(const double[:, ::1] points, double alpha, Py_ssize_t min_size, double[:, ::1] work):
    """The largest statistic of all splits, and its tau and kappa; tau = 0 if no split is long enough.

    `work` has 6 rows, one longer than the segment.

    Time goes with the square of the length, memory with the length. When row k joins, the sums between the rows before
    tau and those from tau on grow by the distances of row k to the rows before tau, a running sum for all tau at once.
    """
    cdef Py_ssize_t n = points.shape[0], size = points.shape[1], i, k, tau, kappa, split = 0, end = 0
    cdef double *cross = &work[0, 0]     # between the rows before tau and those from tau up to kappa
    cdef double *within = &work[1, 0]    # among the rows before tau
    cdef double *scaled = &work[2, 0]    # the same over tau - 1
    cdef double *count = &work[3, 0]     # tau as a double, so that the loop over tau below has doubles only
    cdef double *inverse = &work[4, 0]   # 1 / (n - i), backwards so that it is read forwards
    cdef double *value = &work[5, 0]     # of each tau
    cdef double top = -INFINITY, best, running, total, whole
    cdef const double *later
    with nogil:
        for i in range(n + 1):
            cross[i] = within[i] = scaled[i] = 0.0
            count[i] = i
            inverse[i] = 1.0 / (n - i) if i < n else 0.0
        for k in range(n):
            running = 0.0
            for i in range(k):
                running += distance(&points[k, 0], &points[i, 0], size, alpha)
                cross[i + 1] += running
            kappa = k + 1
            total = within[kappa] = within[k] + running
            scaled[kappa] = total / k if k else 0.0
            if kappa < 2 * min_size:
                continue
            # kappa / 2 times the statistic: C - A m / (n - 1) - B n / (m - 1), with n rows before tau, m = kappa - n after.
            whole = kappa
            later = inverse + (n - kappa + 1)
            for tau in range(min_size, kappa - min_size + 1):
                value[tau] = (cross[tau] - scaled[tau] * (whole - count[tau])
                              - (total - within[tau] - cross[tau]) * count[tau] * later[tau])
            best = top * whole / 2
            for tau in range(min_size, kappa - min_size + 1):
                if value[tau] > best:
                    best, split, end = value[tau], tau, kappa
                    top = best * 2 / whole
    return top, split, end
