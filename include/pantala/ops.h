// All op functions. `pantala ops` (and docs/ops.md) is their reference.
#pragma once

#include "pantala/ops/activation.h"
#include "pantala/ops/arithmetic.h"
#include "pantala/ops/attention.h"
#include "pantala/ops/contract.h"
#include "pantala/ops/conv.h"
#include "pantala/ops/index.h"
#include "pantala/ops/loss.h"
#include "pantala/ops/movement.h"
#include "pantala/ops/norm.h"
#include "pantala/ops/optimizers.h"
#include "pantala/ops/pool.h"
#include "pantala/ops/random.h"
#include "pantala/ops/reduce.h"
#include "pantala/ops/slicing.h"
