// The words of explain/ for the commands.
#pragma once

#include "explain/words.h"

namespace berth::app {

using explain::constraint_key;
using explain::fit;
using explain::padded;
using explain::padded_left;
using explain::short_key;
using explain::short_model;
using explain::show_count;
using explain::show_demand;
using explain::show_gpus_column;
using explain::show_milli;
using explain::show_ranges;
using explain::width_of;

}  // namespace berth::app
