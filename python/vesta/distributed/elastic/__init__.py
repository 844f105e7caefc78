"""What a launched program may use of its launcher, under PyTorch's module paths."""
