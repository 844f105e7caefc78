// Everything a C++ program needs: #include <vesta/vesta.h>.
#pragma once
#include <vesta/core/index.h>
#include <vesta/core/io/safetensors.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/from_data.h>
#include <vesta/core/ops/ops.h>
#include <vesta/core/ops/profile.h>
#include <vesta/core/print.h>
#include <vesta/core/random.h>
#include <vesta/nn/data/dataloader.h>
#include <vesta/nn/functional.h>
#include <vesta/nn/init.h>
#include <vesta/nn/layers/list.h>
#include <vesta/nn/optim/optim.h>
#include <vesta/nn/optim/scheduler.h>
#include <vesta/nn/utils/clip_grad.h>
#include <vesta/nn/utils/rnn.h>
