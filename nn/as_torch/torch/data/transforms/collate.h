#pragma once
#include <torch/data/transforms.h>
