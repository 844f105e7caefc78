"""The fuzz campaigns: random programs, and calls with wrong arguments."""
