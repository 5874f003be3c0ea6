// The reader of recordings: what it takes is written and read again as the same text.
#include "edge/nvml/recording.h"
#include "fuzz.h"

BERTH_FUZZ_TARGET(recording) {
  using namespace berth;
  const auto first = nvml::read_recording(fuzz::text_of(data, size));
  if (!first.ok()) return 0;
  const std::string text = nvml::write_recording(*first);
  const auto again = nvml::read_recording(text);
  fuzz::check(again.ok(), "what is written can be read");
  fuzz::check(nvml::write_recording(*again) == text, "round trip");
  return 0;
}
