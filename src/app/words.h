// The words of people/why/ for the commands.
#pragma once

#include "people/view/words.h"

namespace berth::app {

using people::constraint_key;
using people::fit;
using people::padded;
using people::padded_left;
using people::short_key;
using people::short_model;
using people::show_count;
using people::show_demand;
using people::show_gpus_column;
using people::show_milli;
using people::show_ranges;
using people::width_of;

}  // namespace berth::app
