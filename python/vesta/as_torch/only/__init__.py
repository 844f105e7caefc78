"""Modules that mean nothing outside of PyTorch programs: ``only/jit.py`` is ``torch.jit`` under ``vesta.as_torch``."""
