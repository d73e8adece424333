"""Signatures by which a receiver knows who sent an alert, and when: HMAC-SHA256 over id, time and body.

They follow the Standard Webhooks convention, which libraries in most languages support. It has three headers,
``Webhook-Id``, ``Webhook-Timestamp`` and ``Webhook-Signature``, the last of which is ``v1,`` and the code in base64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping

ID, TIMESTAMP, SIGNATURE = "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"
PREFIX = "whsec_"  # of secrets in base64
VERSION = "v1"


class SignatureError(ValueError):
    """A message that was not signed with the secret, or not lately."""


def key_of(secret: str | bytes) -> bytes:
    """The key of a secret, which is ``whsec_`` and base64, or any text or bytes as they are."""
    if isinstance(secret, str) and secret.startswith(PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            raise ValueError(f"a secret that begins with {PREFIX} must continue in base64") from None
    else:
        key = secret.encode() if isinstance(secret, str) else bytes(secret)
    if not key:
        raise ValueError("an empty secret signs nothing")
    return key


def sign(secret: str | bytes, id: str, timestamp: int, body: bytes) -> str:
    """The value of the header ``Webhook-Signature``.

    Examples
    --------
    >>> from fourrates.alerts import sign
    >>> sign("secret", "a1", 1_700_000_000, b"{}")
    'v1,reLu0t41pMli6nEc9evOBAI0Qjm3yd/YTLik51+xLlw='
    """
    signed = f"{id}.{timestamp}.".encode() + body
    code = hmac.new(key_of(secret), signed, hashlib.sha256).digest()
    return f"{VERSION},{base64.b64encode(code).decode()}"


def verify(
    secret: str | bytes,
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance: float = 300.0,
    now: float | None = None,
) -> str:
    """Check a received request and return the id of the alert.

    Parameters
    ----------
    secret : str or bytes
        The sender's secret.
    headers : mapping
        The headers of the request, their names in any case.
    body : bytes
        The body as received, before any parsing.
    tolerance : float
        How many seconds the timestamp may be off; older messages may be replays.
    now : float, optional
        The time in seconds since 1970, for tests.

    Examples
    --------
    >>> from fourrates.alerts import sign, verify
    >>> headers = {"webhook-id": "a1", "webhook-timestamp": "1700000000"}
    >>> headers["webhook-signature"] = sign("secret", "a1", 1_700_000_000, b"{}")
    >>> verify("secret", headers, b"{}", now=1_700_000_010)
    'a1'
    >>> verify("secret", headers, b'{"at": 1}', now=1_700_000_010)
    Traceback (most recent call last):
    ...
    fourrates.alerts.signature.SignatureError: the signature does not fit the message
    """
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        id, stamp, given = (lower[name.lower()] for name in (ID, TIMESTAMP, SIGNATURE))
        timestamp = int(stamp)
    except (KeyError, ValueError):
        raise SignatureError(f"the headers {ID}, {TIMESTAMP} and {SIGNATURE} are needed") from None
    if abs((time.time() if now is None else now) - timestamp) > tolerance:
        raise SignatureError(f"the message is more than {tolerance:g} s old, or from the future")
    wanted = sign(secret, id, timestamp, body).encode()
    if not any(hmac.compare_digest(wanted, signature.encode()) for signature in given.split()):
        raise SignatureError("the signature does not fit the message")
    return id
