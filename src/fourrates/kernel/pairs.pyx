"""The loops over events that every detector shares, from labels to codes, flags, one event at a time or many.

Labels, names and messages are the business of :mod:`fourrates.detectors`.
"""

from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int64_t, uint16_t

import numpy as np

cdef object DURATION = np.timedelta64  # to NumPy before 2 one that lasts 1 is equal to 1


cdef tuple NOTHING = ()


cdef inline void flag(Pairs self, int state) noexcept nogil:
    self.drift_detected = False  # until something is reported
    self.warning_detected = state & WARNING != 0


cdef class Pairs:
    """The shared part of all detectors of pairs, with labels to codes, the count of events, flags, and the loops over events.

    A detector gives `scan`, the loop over coded events, and in Python `_settle`, which returns the findings of an event and
    continues from there, `_restart`, and `_update_spelled` and `_update_in` for labels and strata that need a closer look.
    """

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size,
                         int* state) noexcept nogil:
        """Take coded events up to the first that has something to report; return how many, and its result."""
        state[0] = QUIET
        return size

    def update(self, y_true, y_pred, stratum=None):
        """Take one event and return the drift it shows.

        Parameters
        ----------
        y_true : label
            The true class of the event.
        y_pred : label
            The class that the classifier predicted.
        stratum : int, optional
            For a detector with strata, the one of the event.

        Returns
        -------
        Drift or None
        """
        if self.stratified or stratum is not None:
            return self._update_in(stratum, y_true, y_pred)
        cdef PyObject* truth = NULL
        cdef PyObject* pred = NULL
        try:
            truth = PyDict_GetItemWithError(self._codes, y_true)
            pred = PyDict_GetItemWithError(self._codes, y_pred)
        except TypeError:  # unhashable, so no label
            pass
        if truth == NULL or pred == NULL or type(y_true) is DURATION or type(y_pred) is DURATION:
            return self._update_spelled(y_true, y_pred)
        cdef uint16_t truth_code = <object>truth, pred_code = <object>pred
        cdef int state
        if self.owner != 0:
            self._idle()
        self.scan(&truth_code, &pred_code, 1, &state)
        flag(self, state)
        if state & REPORT == 0:
            self.findings = NOTHING
            return None
        self.findings = self._report(state)
        for finding in self.findings:
            if finding.kind == "drift":
                return finding
        return None

    def _report(self, int state):
        """The findings of the last event, in order."""
        claimed = self._claim()
        try:
            found = tuple(self._settle(state))
        finally:
            if claimed:
                self._release()
        self.drift_detected = any([finding.kind == "drift" for finding in found])
        return found

    def _run(self, const uint16_t[::1] truths, const uint16_t[::1] preds, Py_ssize_t start):
        """Take coded events from `start` on, up to the first that shows something; return (events taken, findings)."""
        cdef Py_ssize_t taken
        cdef int state
        if self._codes is None:
            raise TypeError("this detector was never set up: __init__ has not run")
        claimed = self._claim()
        try:
            with nogil:
                taken = self.scan(&truths[start], &preds[start], truths.shape[0] - start, &state)
            flag(self, state)
            return taken, self._report(state) if state & REPORT else NOTHING
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
            raise RuntimeError("another thread is using this detector; give each thread its own, or take turns")

    def _forget(self):
        """Back to the first event."""
        self._set_progress(0, -1, False, False)
        self._restart()

    def _stratify(self):
        """From now on events need a stratum."""
        self.stratified = True

    def _progress(self):
        return self.events, self.since, self.drift_detected, self.warning_detected

    def _set_progress(self, int64_t events, int64_t since, bint drift, bint warning):
        self.events, self.since, self.drift_detected, self.warning_detected = events, since, drift, warning
        self.findings = NOTHING
