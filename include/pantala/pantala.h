// Everything that a program needs.
#pragma once

#include "pantala/accumulation.h"
#include "pantala/autodiff.h"
#include "pantala/compile.h"
#include "pantala/data.h"
#include "pantala/graph.h"
#include "pantala/interpreter.h"
#include "pantala/metrics.h"
#include "pantala/nn.h"
#include "pantala/ops.h"
#include "pantala/optim.h"
#include "pantala/schedule.h"
#include "pantala/session.h"
#include "pantala/text.h"
#include "pantala/trainer.h"
#include "pantala/training_step.h"
#include "pantala/zoo.h"
