#pragma once
#include <torch/functions.h>
