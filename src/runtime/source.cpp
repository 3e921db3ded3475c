#include "runtime/source.h"
