"""What tests ask when they run under a sanitizer."""

from __future__ import annotations

import os

SANITIZED = "VESTA_SANITIZE" in os.environ


def with_plain_signals() -> dict[str, str]:
    """Returns an environment in which SIGSEGV and SIGBUS end a program; AddressSanitizer would report and exit."""
    plain = "handle_segv=0:handle_sigbus=0:handle_abort=0"
    return {**os.environ, "ASAN_OPTIONS": ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), plain]))}
