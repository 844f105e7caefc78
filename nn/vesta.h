// Everything a C++ program needs: #include <vesta/vesta.h>.
#pragma once
#include <vesta/core/index.h>
#include <vesta/core/io/safetensors.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/ops.h>
#include <vesta/core/print.h>
#include <vesta/core/random.h>
#include <vesta/nn/data/dataloader.h>
#include <vesta/nn/functional.h>
#include <vesta/nn/init.h>
#include <vesta/nn/layers/activation.h>
#include <vesta/nn/layers/container.h>
#include <vesta/nn/layers/conv.h>
#include <vesta/nn/layers/linear.h>
#include <vesta/nn/layers/norm.h>
#include <vesta/nn/optim/optim.h>
