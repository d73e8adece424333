"""What threads of pyarrow hold is back before a reader is over: one that lets go of it later may abort the process."""

import io
import threading

from fourrates.io import ahead


def test_a_loan_is_over_when_all_that_was_read_is_let_go(monkeypatch):
    monkeypatch.setattr(ahead, "PATIENCE", 60)
    loan = ahead.Loan(io.BytesIO(b"0123456789"))
    held = loan.file.read_buffer(4)
    assert held.to_pybytes() == b"0123"
    ending = threading.Thread(target=loan.end)
    ending.start()
    ending.join(0.2)
    assert ending.is_alive()
    del held
    ending.join(10)
    assert not ending.is_alive()
