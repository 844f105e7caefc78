// The name that libtorch has for this.
#pragma once
#include <torch/nn/any.h>
