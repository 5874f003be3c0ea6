// HorizontalPodAutoscalers have two forms, autoscaling/v1 and v2; one is stored (v2), both are
// served. Pure.
//
// The first knows a target of CPU and nothing else. What else an autoscaler has stands there as
// JSON in annotations of kube-apiserver's names and form, and is read back from them: down and up
// again gives the same object. An annotation that cannot be read is dropped, as it is there.
#pragma once

#include "text/editor.h"

namespace berth::sim::api {

text::Value autoscaler_to_v1(text::Editor& edit, const text::Value& autoscaler);
text::Value autoscaler_to_v2(text::Editor& edit, const text::Value& autoscaler);

}  // namespace berth::sim::api
