"""What several models predict together, label by label: the loops behind :mod:`fourrates.relearn`.

A record is what a rule for predictions has to show: counts of true, predicted and right examples by class. Records lie
in an array by kind of count, rule and class; the first one is of what was predicted in fact.
"""

from libc.math cimport exp, pow
from libc.stdint cimport int32_t, int64_t, uint16_t

import numpy as np

cdef enum:  # the order of fourrates.relearn.measure.MEASURES
    MEAN
    ACCURACY
    F1
    G_MEAN


cdef inline Py_ssize_t largest(const double* value, Py_ssize_t size) noexcept nogil:
    """The first of the largest; what is not a number is larger than all, as NumPy has it."""
    cdef Py_ssize_t i, found = 0
    for i in range(size):
        if value[i] != value[i]:
            return i
        if value[i] > value[found]:
            found = i
    return found


cdef double value_of(const double* true, const double* predicted, const double* right, Py_ssize_t classes,
                     int measure) noexcept nogil:
    """The measure of a record. A class that has not come yet is left out of the recalls."""
    cdef double found = 0.0, all_true = 0.0, all_right = 0.0, f = 0.0, product = 1.0
    cdef Py_ssize_t c
    for c in range(classes):
        all_true += true[c]
        all_right += right[c]
        if c == 1 or classes > 2:
            f += 2 * right[c] / max(true[c] + predicted[c], 1.0)
        if true[c] > 0:
            product *= right[c] / max(true[c], 1.0)
    if measure == MEAN or measure == ACCURACY:
        found += all_right / max(all_true, 1.0)
    if measure == MEAN or measure == F1:
        found += f if classes == 2 else f / classes
    if measure == MEAN or measure == G_MEAN:
        found += pow(product, 1.0 / classes)
    return found / 3 if measure == MEAN else found


cdef void add_scaled(double* weight, const double* part, const double* share, Py_ssize_t classes) noexcept nogil:
    """Add a part, brought to a mean of 1 over the examples."""
    cdef double mean = 0.0
    cdef Py_ssize_t c
    for c in range(classes):
        mean += share[c] * part[c]
    for c in range(classes):
        weight[c] += part[c] / mean


cdef void weigh(const double* true, const double* predicted, const double* right, Py_ssize_t classes, int measure,
                double* work, double* weight) noexcept nogil:
    """What an example of each class is worth to a measure, given a record; `work` has room for twice the classes."""
    cdef double* share = work
    cdef double* part = work + classes
    cdef double total = 0.0, others = 0.0, first = 0.0, second = 0.0, size, f
    cdef Py_ssize_t c
    for c in range(classes):
        weight[c] = 1.0 if measure == ACCURACY or measure == MEAN else 0.0
        total += true[c] + 1
    if measure == ACCURACY:
        return
    for c in range(classes):
        share[c] = (true[c] + 1) / total
    if measure != F1:  # the slope of the G-mean
        for c in range(classes):
            part[c] = 1 / (right[c] + 1)
        add_scaled(weight, part, share, classes)
    if measure != G_MEAN:  # the slope of F1, or of the mean of those of more than two classes
        for c in range(classes):
            size = true[c] + predicted[c] + 2
            f = 2 * (right[c] + 1) / size
            if classes == 2:
                part[0], part[1] = f / size, (2 - f) / size
            else:
                others += f / size
                part[c] = (2 - f) / size - f / size / (classes - 1)
        if classes > 2:
            for c in range(classes):
                part[c] += others / (classes - 1)
        add_scaled(weight, part, share, classes)
    for c in range(classes):
        first += share[c] * weight[c]
        second += share[c] * weight[c] * weight[c]
    for c in range(classes):
        weight[c] *= first / second


def values(const double[:, :, ::1] counts, int measure, double[::1] found):
    """The measure of each record."""
    cdef Py_ssize_t i
    for i in range(counts.shape[1]):
        found[i] = value_of(&counts[0, i, 0], &counts[1, i, 0], &counts[2, i, 0], counts.shape[2], measure)


def class_weights(const double[:, :, ::1] counts, int measure, double[:, ::1] found):
    """What an example of each class is worth, for each record."""
    cdef Py_ssize_t i
    cdef double[::1] work = np.empty(2 * counts.shape[2])
    for i in range(counts.shape[1]):
        weigh(&counts[0, i, 0], &counts[1, i, 0], &counts[2, i, 0], counts.shape[2], measure, &work[0], &found[i, 0])


cdef void say(const double[:, :, :] forecasts, Py_ssize_t at, const int64_t[::1] places, const double[:, ::1] weights,
              const double[:, ::1] worth, Py_ssize_t alone, double[::1] vote, double[::1] work,
              int32_t* said) noexcept nogil:
    """What each rule predicts of an example: votes that weigh classes, plain votes, and members that speak alone."""
    cdef Py_ssize_t members = forecasts.shape[0], classes = forecasts.shape[2], votes = weights.shape[1]
    cdef Py_ssize_t staked = worth.shape[0] - 1, v, c, m
    for v in range(votes):
        for c in range(classes):
            vote[c] = weights[0, v] * forecasts[0, at, c]
            for m in range(1, members):
                vote[c] += weights[m, v] * forecasts[m, at, c]
        said[staked + v] = <int32_t>largest(&vote[0], classes)
        if v < staked:
            for c in range(classes):
                work[c] = vote[c] * worth[1 + v, c]
            said[v] = <int32_t>largest(&work[0], classes)
    for m in range(alone):
        said[staked + votes + m] = said[staked]
    for m in range(members):
        if places[m] >= 0:
            for c in range(classes):
                work[c] = forecasts[m, at, c]
            said[staked + votes + places[m]] = <int32_t>largest(&work[0], classes)


def apply(const double[:, :, :] forecasts, const int64_t[::1] places, const double[:, ::1] weights,
          const double[:, ::1] worth, int32_t[:, ::1] said):
    """What each rule predicts of each example, by example and rule.

    Parameters
    ----------
    forecasts : probabilities, by member, example and class
    places : for each member its place among the rules that take one member's word, or -1
    weights : by member and vote
    worth : what an example of each class is worth: first to what was predicted, then to each vote that weighs classes
    said : receives the classes
    """
    cdef Py_ssize_t at, alone = said.shape[1] - (worth.shape[0] - 1) - weights.shape[1]
    cdef double[::1] vote = np.empty(forecasts.shape[2]), work = np.empty(forecasts.shape[2])
    with nogil:
        for at in range(forecasts.shape[1]):
            say(forecasts, at, places, weights, worth, alone, vote, work, &said[at, 0])


def follow(const double[:, :, :] forecasts, const uint16_t[::1] truths, Py_ssize_t at, const int64_t[::1] places,
           double[:, ::1] weights, double[:, ::1] worth, double[:, :, ::1] counts, int measure, Py_ssize_t rule,
           const double[::1] rates, double share, double threshold, double longest, int32_t[::1] served):
    """Predict by a rule and take labels from `at` on, until there is something to decide; where it stopped.

    That is when another rule has the better record, the records have come to the longest, or the weight of a member is
    `threshold` times that of the first. Weights, counts and worth are brought up to date, `served` is filled in.

    Parameters
    ----------
    forecasts, places, weights, worth : as for :func:`apply`
    truths : the classes, by example
    counts : the records
    rule : the one to follow
    rates : what a right prediction that is worth 1 adds to the logarithm of a weight, for each vote
    share : of all weight that is spread evenly after each label
    """
    cdef Py_ssize_t members = forecasts.shape[0], classes = forecasts.shape[2], rules = counts.shape[1] - 1
    cdef Py_ssize_t votes = weights.shape[1], alone = rules - (worth.shape[0] - 1) - votes, i, m, v, truth
    cdef double[::1] vote = np.empty(classes), work = np.empty(2 * classes), value = np.empty(rules)
    cdef int32_t[::1] said = np.empty(1 + rules, np.int32)  # the first is what is served
    cdef double total, most, length
    if not forecasts.shape[1] == truths.shape[0] == served.shape[0]:
        raise ValueError("arrays of different sizes")
    with nogil:
        while at < truths.shape[0]:
            truth = truths[at]
            say(forecasts, at, places, weights, worth, alone, vote, work, &said[1])
            served[at] = said[0] = said[1 + rule]
            for v in range(votes):
                total = 0.0
                for m in range(members):
                    for i in range(classes):
                        work[i] = forecasts[m, at, i]
                    if largest(&work[0], classes) == truth:
                        weights[m, v] *= exp(rates[v] * worth[0, truth])
                    total += weights[m, v]
                for m in range(members):
                    weights[m, v] = share / members + (1 - share) / total * weights[m, v]
            length = 0.0
            for i in range(1 + rules):
                counts[0, i, truth] += 1
                counts[1, i, said[i]] += 1
                counts[2, i, truth] += said[i] == truth
            for i in range(worth.shape[0]):
                weigh(&counts[0, i, 0], &counts[1, i, 0], &counts[2, i, 0], classes, measure, &work[0], &worth[i, 0])
            at += 1
            for i in range(classes):
                length += counts[0, 1, i]
            most = 0.0
            for m in range(members):
                most = max(most, weights[m, 0])
            for i in range(rules):
                value[i] = value_of(&counts[0, 1 + i, 0], &counts[1, 1 + i, 0], &counts[2, 1 + i, 0], classes, measure)
            if length >= longest or most >= threshold * weights[0, 0] or largest(&value[0], rules) != rule:
                break
    return at
