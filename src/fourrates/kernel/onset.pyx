"""How likely is a change at each of some moments: the loops behind :mod:`fourrates.onset`.

The moments are rows of counts, a column a rate: `n` observations up to a moment, `ones` among them; `total` and `right`
are the same now.
"""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int64_t


cdef inline double share(double count, double n) noexcept nogil:
    return count * log(count / n) if count > 0 else 0.0


cdef inline double best(double ones, double n) noexcept nogil:
    """The log-likelihood of so many ones at the rate that makes them most likely."""
    return share(ones, n) + share(n - ones, n)


cdef inline double five(double x) noexcept nogil:
    return x * (x + 1) * (x + 2) * (x + 3) * (x + 4)


cdef inline double series(double x) noexcept nogil:
    """What the logarithm of the gamma function has beside (x - 1/2) log(x) - x and a constant, for large x (Stirling)."""
    return (1 / 12. - 1 / (360 * x * x)) / x


cdef inline double rising(double x, double count) noexcept nogil:
    """The logarithm of x (x + 1) ... (x + count - 1), to 1e-6 for x from 1/2 on: by Stirling's series at 5 more."""
    cdef double near = x + 5, far = near + count
    return ((far - 0.5) * log(far) - (near - 0.5) * log(near) - count + series(far) - series(near)
            + log(five(x) / five(x + count)))


cdef double marginal(double ones, double n, double old, const double[:, ::1] prior) noexcept nogil:
    """The log-likelihood of so many ones at a rate of which only the old value is known.

    A row of the prior: as many observations at the old value tell as much of the new one, and how probable that is.
    """
    cdef double top = -INFINITY, sum = 0.0, term, known
    cdef Py_ssize_t i
    for i in range(prior.shape[0]):
        known = prior[i, 0]
        term = (rising(known * old + 0.5, ones) + rising(known * (1 - old) + 0.5, n - ones) - rising(known + 1, n))
        if term > top:
            sum, top = sum * exp(top - term), term
        sum += prior[i, 1] * exp(term - top)
    return top + log(sum)


def likelihood(const int64_t[:, :] n, const int64_t[:, :] ones, const int64_t[::1] total, const int64_t[::1] right,
               const double[:, ::1] prior, double[::1] found):
    """The log-likelihood of a change at each moment; without rows in the prior, with the new rates that make it largest."""
    cdef Py_ssize_t i, j
    cdef double old, later, later_ones
    with nogil:
        for i in range(n.shape[0]):
            found[i] = 0.0
            for j in range(n.shape[1]):
                old = (ones[i, j] + 0.5) / (n[i, j] + 1.0)  # never 0 nor 1: the mean under Jeffreys' prior
                later, later_ones = total[j] - n[i, j], right[j] - ones[i, j]
                found[i] += best(ones[i, j], n[i, j])
                found[i] += marginal(later_ones, later, old, prior) if prior.shape[0] else best(later_ones, later)
