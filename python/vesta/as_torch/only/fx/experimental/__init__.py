"""``torch.fx.experimental``: passes over graphs that nobody relies on yet."""
