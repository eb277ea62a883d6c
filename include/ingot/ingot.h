/* ingot.h: the whole array library in one include. */
#ifndef INGOT_INGOT_H
#define INGOT_INGOT_H

#define IG_VERSION "0.1.0"
#define IG_VERSION_MAJOR 0
#define IG_VERSION_MINOR 1
#define IG_VERSION_PATCH 0

#include "ingot/array.h"
#include "ingot/device.h"
#include "ingot/memory.h"
#include "ingot/ops.h"
#include "ingot/quant.h"
#include "ingot/status.h"
#include "ingot/transform.h"
#endif
