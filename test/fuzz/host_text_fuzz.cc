// Texts of the kernel and of the distribution: whatever is read from them is well-formed.
#include <algorithm>
#include <string>

#include "edge/host/host_text.h"
#include "fuzz.h"

namespace {

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

void check_container(std::string_view input) {
  using berth::fuzz::check;
  std::string plain = "0::/kubepods";
  const auto places = berth::host::containers_of_cgroups(input);
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    check(place->container_id.size() == 64 &&
              std::all_of(place->container_id.begin(), place->container_id.end(), is_hex),
          "an id has 64 digits");
    check(place->pod_uid.size() == 32 || place->pod_uid.size() == 36, "a UID has a UID's length");
    check(std::all_of(place->pod_uid.begin(), place->pod_uid.end(),
                      [](char c) { return is_hex(c) || c == '-'; }),
          "a UID has digits and dashes");
    plain += "/pod" + place->pod_uid + "/" + place->container_id;
  }
  check(berth::host::containers_of_cgroups(plain) == places, "the plain form reads back");
}

}  // namespace

BERTH_FUZZ_TARGET(host_text) {
  using namespace berth;
  const std::string_view input = fuzz::text_of(data, size);
  check_container(input);
  if (const auto message = host::kernel_message(input)) {
    fuzz::check(message->find('\n') == std::string::npos, "a message is one line");
    fuzz::check(host::kernel_message("6,1,2,-;" + *message) == message, "a message reads back");
  }
  for (const auto& [key, value] : host::os_release_of(input)) {
    fuzz::check(!key.empty() && value.find('\n') == std::string::npos, "a key and one line");
  }
  for (const auto& [key, minor] : host::mig_minors_of(input)) {
    fuzz::check(!key.empty() && minor >= 0, "a key and a minor");
  }
  const std::string id = host::bus_id_of(input);
  fuzz::check(id.empty() || host::bus_id_of(id) == id, "a bus id is spelled one way");
  return 0;
}
