// MIG: what the agent and its helper say to one another, and declared layouts.
#include <string>

#include "base/utf8.h"
#include "fuzz.h"
#include "node/partition/mig_config.h"
#include "node/partition/mig_words.h"

namespace {

using namespace berth;

void check_request(std::string_view input) {
  const auto request = partition::read_request(input);
  if (!request.ok()) return;
  const std::string text = partition::write_request(*request);
  fuzz::check(text.size() <= partition::kMaxHelperRequest, "the helper takes it");
  const auto again = partition::read_request(text);
  fuzz::check(again.ok() && *again == *request, "a request reads back");
}

void check_mig_answer(std::string_view input) {
  const auto answer = partition::read_answer(input);
  if (!answer.ok()) {
    fuzz::check(is_utf8(answer.error().to_string()), "an error can be written anywhere");
    const auto again = partition::read_answer(partition::write_answer(answer));
    fuzz::check(!again.ok(), "an error stays one");
    return;
  }
  const auto again = partition::read_answer(partition::write_answer(answer));
  fuzz::check(again.ok() && *again == *answer, "an answer reads back");
}

std::vector<partition::MigGpu> two_gpus() {
  std::vector<partition::MigGpu> out;
  for (int i = 0; i < 2; ++i) {
    partition::MigGpu gpu;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.index = i;
    gpu.pci_device = 0x233510DE;
    gpu.capable = true;
    gpu.geometry = partition::usual_geometry(7, 143'771);
    out.push_back(gpu);
  }
  return out;
}

void check_wishes(const partition::MigLayout& layout) {
  static const std::vector<partition::MigGpu> gpus = two_gpus();
  const auto wishes = partition::wishes(layout, gpus);
  if (!wishes.ok()) return;
  fuzz::check(wishes->size() <= gpus.size(), "a wish is for a GPU that is there");
  for (const auto& [uuid, wish] : *wishes) {
    fuzz::check(!partition::describe(wish).empty(), "a wish can be told");
    for (const auto& [profile, count] : wish.devices) {
      fuzz::check(!profile.empty() && count > 0, "so many of a profile");
    }
  }
}

void check_mig_config(std::string_view input) {
  if (const auto config = partition::read_mig_config(input); config.ok()) {
    fuzz::check(input.size() <= 1 << 20 && config->size() <= 1'024, "a file is bounded");
    for (const auto& [name, layout] : *config) {
      fuzz::check(layout.size() <= 256, "a layout is bounded");
      check_wishes(layout);
    }
  }
  const auto usual = partition::usual_layout(std::string(input), two_gpus());
  if (usual.ok()) check_wishes(*usual);
}

}  // namespace

BERTH_FUZZ_TARGET(mig_text) {
  const std::string_view input = fuzz::text_of(data, size);
  check_request(input);
  check_mig_answer(input);
  check_mig_config(input);
  return 0;
}
