#pragma once
#include <torch/exceptions.h>
