// AdamW stands beside Adam.
#pragma once
#include <torch/optim/adam.h>
