#pragma once
#include <torch/guards.h>
