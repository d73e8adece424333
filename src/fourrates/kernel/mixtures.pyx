"""Quantiles of mixtures of laws, the loops behind :mod:`fourrates.evidence.onset`, which has several for each drift."""

from libc.math cimport exp, tanh

cdef enum:
    HALVINGS = 40  # of the range that holds a quantile

cdef struct Lanes:
    const double* weight
    const double* middle
    const double* below
    const double* above
    Py_ssize_t size

ctypedef double (*Law)(double at, const Lanes* lanes) noexcept nogil


cdef double exponential_law(double at, const Lanes* lanes) noexcept nogil:
    cdef double total = 0.0, both
    cdef Py_ssize_t i
    for i in range(lanes.size):
        both = lanes.below[i] + lanes.above[i]
        if at < lanes.middle[i]:
            total += lanes.weight[i] * lanes.below[i] / both * exp((at - lanes.middle[i]) / lanes.below[i])
        else:
            total += lanes.weight[i] * (1 - lanes.above[i] / both * exp((lanes.middle[i] - at) / lanes.above[i]))
    return total


cdef double logistic_law(double at, const Lanes* lanes) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(lanes.size):
        total += 0.5 * lanes.weight[i] * (1 + tanh((at - lanes.middle[i]) / (2 * lanes.below[i])))
    return total


cdef double quantile(Law law, const Lanes* lanes, double level, double low, double high) noexcept nogil:
    """The point at which a growing law reaches a level, by halving the range that holds it."""
    cdef double middle
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if law(middle, lanes) < level:
            low = middle
        else:
            high = middle
    return high


def exponential_quantile(const double[::1] weights, const double[::1] middles, const double[::1] below,
                         const double[::1] above, double level, double low, double high):
    """Of laws that fall off exponentially on either side of their middles, with these scales."""
    cdef Lanes lanes
    if not weights.shape[0] == middles.shape[0] == below.shape[0] == above.shape[0] > 0:
        raise ValueError("arrays of different sizes, or none")
    lanes.weight, lanes.middle, lanes.below, lanes.above = &weights[0], &middles[0], &below[0], &above[0]
    lanes.size = weights.shape[0]
    return quantile(exponential_law, &lanes, level, low, high)


def logistic_quantile(const double[::1] weights, const double[::1] middles, const double[::1] scales, double level,
                      double low, double high):
    """Of logistic laws with these scales."""
    cdef Lanes lanes
    if not weights.shape[0] == middles.shape[0] == scales.shape[0] > 0:
        raise ValueError("arrays of different sizes, or none")
    lanes.weight, lanes.middle, lanes.below, lanes.above = &weights[0], &middles[0], &scales[0], &scales[0]
    lanes.size = weights.shape[0]
    return quantile(logistic_law, &lanes, level, low, high)
