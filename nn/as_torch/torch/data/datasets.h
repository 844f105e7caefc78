#pragma once
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/mnist.h>
