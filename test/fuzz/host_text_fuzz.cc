// Texts of the kernel and of the distribution: whatever is read from them is well-formed.
#include <algorithm>
#include <string>

#include "fuzz.h"
#include "host/host_text.h"

namespace {

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

void check_container(std::string_view input) {
  using berth::fuzz::check;
  const auto found = berth::host::container_of_cgroups(input);
  if (!found) return;
  check(found->container_id.size() == 64 &&
            std::all_of(found->container_id.begin(), found->container_id.end(), is_hex),
        "an id has 64 digits");
  check(found->pod_uid.size() == 32 || found->pod_uid.size() == 36, "a UID has a UID's length");
  check(std::all_of(found->pod_uid.begin(), found->pod_uid.end(),
                    [](char c) { return is_hex(c) || c == '-'; }),
        "a UID has digits and dashes");
  const auto again = berth::host::container_of_cgroups("0::/kubepods/pod" + found->pod_uid + "/" +
                                                       found->container_id);
  check(again && again->pod_uid == found->pod_uid && again->container_id == found->container_id,
        "the plain form reads back");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
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
