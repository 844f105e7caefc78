#pragma once
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/chunk.h>
#include <torch/data/datasets/mnist.h>
#include <torch/data/datasets/stateful.h>
