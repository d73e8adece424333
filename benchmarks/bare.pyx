# cython: language_level=3, boundscheck=False, wraparound=False
"""The least any detector of four rates must do: four time-decayed means, no bounds. The limit for update_many."""


def four_means(const unsigned short[::1] truths, const unsigned short[::1] preds, double decay):
    cdef double[4] mean = [0.5, 0.5, 0.5, 0.5]
    cdef double gain = 1.0 - decay, hit
    cdef Py_ssize_t i
    with nogil:
        for i in range(truths.shape[0]):
            hit = gain * (truths[i] == preds[i])
            mean[truths[i]] = decay * mean[truths[i]] + hit
            mean[2 + preds[i]] = decay * mean[2 + preds[i]] + hit
    return [mean[i] for i in range(4)]
