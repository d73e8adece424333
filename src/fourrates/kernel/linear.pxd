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


cdef class LinearRules(Rules):
    cdef readonly int rates, tests
    cdef Py_ssize_t sums, cells        # where in a record they begin
    cdef int* first                    # test of each rate, and behind the last
    cdef Test* test
    cdef Grid* grid                    # one a test
    cdef tuple tables                  # kept, so that their arrays stay

    cdef int observe(self, Cell* cells, int begin, int end, int64_t n, int64_t ones, double hit) noexcept nogil
    cdef int take(self, char* record, int truth, int guess) noexcept nogil
    cdef bint outside(self, const Cell* cells) noexcept nogil
