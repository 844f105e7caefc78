"""What a launched program may use of its launcher; PyTorch's places for these names."""
