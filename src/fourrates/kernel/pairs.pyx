"""A detector as the kernel has it: rules, the record of one stream, and the loops over events, one at a time or many.

Labels, names and messages are the business of :mod:`fourrates.detectors`.
"""

from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport uint8_t, uint16_t
from libc.string cimport memcpy, memset

import numpy as np

from fourrates.kernel.record cimport (
    DRIFTED, LINE, OPEN, REPORT, WARNED, WARNING, Head, Rules, aligned, events_of, since_of, slice_of,
)

cdef object DURATION = np.timedelta64  # to NumPy before 2 one that lasts 1 is equal to 1


cdef tuple NOTHING = ()


cdef class Pairs:
    """A detector of pairs, with labels to codes, the count of events, flags, and the loops over events.

    A detector gives rules, and in Python `_settle_record`, which returns the findings of a record's last event and changes
    the record to go on from there, and `_update_spelled` and `_update_in` for labels and strata that need a closer look.
    """

    def _follow(self, Rules rules):
        """Begin a stream under these rules."""
        if self.rules is not None:
            raise TypeError("this detector is set up already; clone() makes another")
        self.rules = rules
        self.memory = np.zeros(rules.size + 2 * LINE, np.uint8)
        self.record = aligned(self.memory)
        self.work = np.zeros(rules.scratch_size + 2 * LINE, np.uint8)
        self.scratch = aligned(self.work)
        self._forget()

    cdef Py_ssize_t scan(self, const uint16_t* truths, const uint16_t* preds, Py_ssize_t size,
                         int* state) noexcept nogil:
        """Take coded events up to the first that has something to report; return how many, and its result."""
        cdef Py_ssize_t taken = self.rules.scan(self.record, self.scratch, truths, preds, size, state)
        cdef Head* head = <Head*>self.record
        self.events, self.since = events_of(head), since_of(head)
        self.drift_detected = False  # until something is reported
        self.warning_detected = state[0] & WARNING != 0
        return taken

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
            found = tuple(self._settle_record(self._record_view(), state))
            self._reread()
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
        memset(self.record, 0, self.rules.size)
        (<Head*>self.record).last = -1
        self.rules.begin(self.record)
        self.findings = NOTHING
        self._reread()

    def _set_rules(self, Rules rules):
        """Continue with other rules, for records of the same size."""
        if rules.size != self.rules.size or rules.scratch_size != self.rules.scratch_size:
            raise ValueError(f"rules for records of {rules.size} bytes, not of {self.rules.size}")
        self.rules = rules
        self._reread()

    def _record_view(self):
        """The record itself, to be changed; `_reread` is called after that."""
        return slice_of(self.memory, self.record, self.rules.size)

    def _reread(self):
        """The record was changed, so values derived from it are no longer valid."""
        cdef Head* head = <Head*>self.record
        memset(self.scratch, 0, self.rules.scratch_size)
        self.events, self.since = events_of(head), since_of(head)
        self.drift_detected = head.events & DRIFTED != 0
        self.warning_detected = head.events & (WARNED | OPEN) == WARNED

    @property
    def warning_since(self):
        """The event that opened the warning."""
        return None if self.since < 0 else self.since

    @property
    def record_bytes(self):
        """The record, as it is now."""
        self._idle()
        self.rules.load_checked(self.record)  # derived values are no part of it
        return self.record[:self.rules.size]

    def _set_record(self, record):
        """Continue from a record; it is checked first."""
        cdef const uint8_t[::1] view = np.frombuffer(record, np.uint8)
        self.rules.check(np.frombuffer(record, np.uint8)[None])
        memcpy(self.record, &view[0], self.rules.size)
        self.rules.load_checked(self.record)
        self.findings = NOTHING
        self._reread()
