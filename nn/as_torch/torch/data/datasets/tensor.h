#pragma once
#include <torch/data/datasets/base.h>
