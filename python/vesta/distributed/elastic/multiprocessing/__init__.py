"""Errors of worker processes, as the launcher reads them."""

from . import errors as errors
