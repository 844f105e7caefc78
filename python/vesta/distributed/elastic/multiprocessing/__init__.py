"""Errors of worker processes, in the form that the launcher reads."""

from . import errors as errors
