// MIG: what the agent and its helper say to one another, and declared layouts.
#include <string>

#include "base/utf8.h"
#include "discover/mig_config.h"
#include "discover/mig_words.h"
#include "fuzz.h"

namespace {

using namespace berth;

void check_request(std::string_view input) {
  const auto request = discover::read_request(input);
  if (!request.ok()) return;
  const std::string text = discover::write_request(*request);
  fuzz::check(text.size() <= discover::kMaxHelperRequest, "the helper takes it");
  const auto again = discover::read_request(text);
  fuzz::check(again.ok() && *again == *request, "a request reads back");
}

void check_mig_answer(std::string_view input) {
  const auto answer = discover::read_answer(input);
  if (!answer.ok()) {
    fuzz::check(is_utf8(answer.error().to_string()), "an error can be written anywhere");
    const auto again = discover::read_answer(discover::write_answer(answer));
    fuzz::check(!again.ok(), "an error stays one");
    return;
  }
  const auto again = discover::read_answer(discover::write_answer(answer));
  fuzz::check(again.ok() && *again == *answer, "an answer reads back");
}

std::vector<discover::MigGpu> two_gpus() {
  std::vector<discover::MigGpu> out;
  for (int i = 0; i < 2; ++i) {
    discover::MigGpu gpu;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.index = i;
    gpu.pci_device = 0x233510DE;
    gpu.capable = true;
    gpu.geometry = discover::usual_geometry(7, 143'771);
    out.push_back(gpu);
  }
  return out;
}

void check_wishes(const discover::MigLayout& layout) {
  static const std::vector<discover::MigGpu> gpus = two_gpus();
  const auto wishes = discover::wishes(layout, gpus);
  if (!wishes.ok()) return;
  fuzz::check(wishes->size() <= gpus.size(), "a wish is for a GPU that is there");
  for (const auto& [uuid, wish] : *wishes) {
    fuzz::check(!discover::describe(wish).empty(), "a wish can be told");
    for (const auto& [profile, count] : wish.devices) {
      fuzz::check(!profile.empty() && count > 0, "so many of a profile");
    }
  }
}

void check_mig_config(std::string_view input) {
  if (const auto config = discover::read_mig_config(input); config.ok()) {
    fuzz::check(input.size() <= 1 << 20 && config->size() <= 1'024, "a file is bounded");
    for (const auto& [name, layout] : *config) {
      fuzz::check(layout.size() <= 256, "a layout is bounded");
      check_wishes(layout);
    }
  }
  const auto usual = discover::usual_layout(std::string(input), two_gpus());
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
