#include "app/cluster/user_crds.h"

// The file as it is, without a compiler reading it as a literal.
asm(".section .rodata\n"
    ".global berth_user_crds_begin\n"
    ".global berth_user_crds_end\n"
    "berth_user_crds_begin:\n"
    ".incbin \"" BERTH_USER_CRDS
    "\"\n"
    "berth_user_crds_end:\n"
    ".byte 0\n"
    ".text\n");

extern "C" {
extern const char berth_user_crds_begin[];
extern const char berth_user_crds_end[];
}

namespace berth::app {

std::string_view user_crds() {
  return {berth_user_crds_begin,
          static_cast<std::size_t>(berth_user_crds_end - berth_user_crds_begin)};
}

}  // namespace berth::app
