// What a pod asks of GPUs: from resources and annotations to one model::GpuDemandSpec.
//
// There are six ways to ask and a pod uses at most one of them:
//   nvidia.com/gpu: n                whole devices
//   nvidia.com/gpu.shared: n         shares of devices
//   nvidia.com/mig-<profile>: n      slices
//   gpu-fraction: "0.5"              a part of a device  } annotations, as KAI reads them;
//   gpu-memory: "20000"              MiB of a device     } gpu-fraction-num-devices: how many
//   none
// Besides, berth.dev/gpu-model (comma list of products), berth.dev/gpu-memory-min (a quantity) and
// berth.dev/gpus (indices that a bound pod holds, one per share or slot).
#pragma once

#include "kinds/meta.h"
#include "kinds/resources.h"

namespace berth::kinds {

// Takes the GPU resources out of out.requests and fills the GPU fields of out. object is the Pod or
// the template, for the places of errors. False: how much it asks for cannot be read. For a pod
// that runs all the same, resources then go before annotations, and where annotations alone ask,
// each GPU is taken whole, at least one.
bool read_gpu_demand(const text::Value& object, const Meta& meta, const Containers& containers,
                     model::PodSpec& out, text::Decoder& d);

// "0.5" to 500. Digits after the third decimal are dropped (exact says whether there were any).
bool parse_fraction(std::string_view text, int& milli, bool& exact);

}  // namespace berth::kinds
