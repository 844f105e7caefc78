"""``torch.fx.passes``: what goes over a graph."""
