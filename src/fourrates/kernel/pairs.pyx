"""The loops over events that every detector shares: labels to codes, flags, one event at a time or many.

Labels, names and messages are the business of :mod:`fourrates.detectors`.
"""

from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int64_t, uint16_t

import numpy as np

cdef object DURATION = np.timedelta64  # to NumPy before 2 one that lasts 1 is equal to 1


cdef inline void flag(Pairs self, int state) noexcept nogil:
    self.drift_detected = state == DRIFT
    self.warning_detected = state == WARNING


cdef class Pairs:
    """What every detector of pairs shares: labels to codes, the count of events, flags, and the loops over events.

    A detector gives `scan`, the loop over coded events. On a drift `_report` makes what the user gets, then `_restart`
    starts afresh.
    """

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* guesses, Py_ssize_t size,
                         int* state) noexcept nogil:
        """Take coded events up to the first drift; return how many, and the state the last one left."""
        state[0] = QUIET
        return size

    def update(self, y_true, y_pred):
        """Take one event and say what it showed.

        Parameters
        ----------
        y_true : label
            What the event turned out to be.
        y_pred : label
            What the classifier had said.

        Returns
        -------
        Drift or None
        """
        cdef PyObject* truth = NULL
        cdef PyObject* guess = NULL
        try:
            truth = PyDict_GetItemWithError(self._codes, y_true)
            guess = PyDict_GetItemWithError(self._codes, y_pred)
        except TypeError:  # unhashable, so no label
            pass
        if truth == NULL or guess == NULL or type(y_true) is DURATION or type(y_pred) is DURATION:
            self._refuse(y_true, y_pred)
        cdef uint16_t truth_code = <object>truth, guess_code = <object>guess
        cdef int state
        if self.owner != 0:
            self._idle()
        self.scan(&truth_code, &guess_code, 1, &state)
        flag(self, state)
        return self._told(state) if state >= DRIFT else None

    def _told(self, int state):
        """What a drift or a shift has to tell; None of a shift, which is kept aside."""
        claimed = self._claim()
        try:
            if state == SHIFT:
                self._shifted()
            return self._drifted() if state == DRIFT else None
        finally:
            if claimed:
                self._release()

    def _shifted(self):
        """The classes shifted: only a detector that watches them gets here."""

    def _drifted(self):
        report = self._report(self.events - 1, self.since)
        self._restart()
        self.since = -1
        return report

    def _run(self, const uint16_t[::1] truths, const uint16_t[::1] guesses, Py_ssize_t start):
        """Take coded events from `start` on, up to the first drift or shift; return (events taken, Drift or None)."""
        cdef Py_ssize_t taken
        cdef int state
        if self._codes is None:
            raise TypeError("this detector was never set up: __init__ has not run")
        claimed = self._claim()
        try:
            with nogil:
                taken = self.scan(&truths[start], &guesses[start], truths.shape[0] - start, &state)
            flag(self, state)
            return taken, self._told(state) if state >= DRIFT else None
        finally:
            if claimed:
                self._release()

    def _claim(self):
        """Keep other threads out; whether it is this call that does so, and has to let them in again."""
        self._idle()
        if self.owner != 0:
            return False
        self.owner = PyThread_get_thread_ident()
        return True

    def _release(self):
        self.owner = 0

    def _idle(self):
        """Raise if another thread is at it."""
        if self.owner != 0 and self.owner != <unsigned long>PyThread_get_thread_ident():
            raise RuntimeError("another thread is using this detector: give each thread its own, or take turns")

    def _forget(self):
        """Back to the first event."""
        self._set_progress(0, -1, False, False)
        self._restart()

    def _restart(self):
        raise NotImplementedError

    def _report(self, at, since):
        raise NotImplementedError

    def _refuse(self, y_true, y_pred):
        raise NotImplementedError

    def _progress(self):
        return self.events, self.since, self.drift_detected, self.warning_detected

    def _set_progress(self, int64_t events, int64_t since, bint drift, bint warning):
        self.events, self.since, self.drift_detected, self.warning_detected = events, since, drift, warning
