"""Starts the processes of one machine and supervises them; ``python -m vesta.distributed.run`` is its command line."""

from .api import SignalException as SignalException
from .api import elastic_launch as elastic_launch
from .api import launch as launch
from .config import LaunchConfig as LaunchConfig
