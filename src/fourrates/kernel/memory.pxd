"""Asking a processor for memory that will be written to soon."""

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define FOURRATES_FETCH(place) __builtin_prefetch((place), 1)
    #else
    #define FOURRATES_FETCH(place) ((void)(place))
    #endif
    """
    void prefetch "FOURRATES_FETCH"(const void* place) noexcept nogil
