"""The paper's statistic: rules and record of LFR."""

from libc.stdint cimport int64_t, uint16_t, uint32_t

from fourrates.kernel.record cimport Rules
from fourrates.kernel.tables cimport Grid, Test


cdef struct Cell:
    # One statistic. While n <= calm and low <= statistic * FULL <= high it stands where it stood: limits of its present
    # place only, rounded inwards.
    double statistic
    uint16_t low, high
    uint32_t calm         # and below it the place


cdef struct Layout:
    int classes, tests
    Py_ssize_t sums, cells             # where in a record they begin
    int* first                         # test of each rate, and behind the last
    Test* test
    Grid* grid                         # one a test


cdef class LinearRules(Rules):
    cdef readonly int rates, tests
    cdef Layout layout
    cdef tuple tables                  # kept, so that their arrays stay
