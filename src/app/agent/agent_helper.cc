#include "app/agent/agent_helper.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <csignal>
#include <istream>
#include <ostream>
#include <system_error>

#include "base/crash_point.h"
#include "edge/host/fd.h"
#include "edge/nvml/mig_control.h"
#include "node/partition/mig_words.h"
#include "text/escape.h"

namespace berth::app {

namespace {

Result<std::string> read_all_of(std::istream& in, std::size_t most) {
  std::string text(most + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > most) {
    return Error(Code::kExhausted, "the request is longer than " + std::to_string(most) + " bytes");
  }
  return text;
}

// One that was started by an agent that died may still be at work. The lock goes with the process.
Result<host::Fd> take_lock(const std::string& path) {
  if (path.empty()) return host::Fd();
  host::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.open()) {
    return Error(Code::kUnavailable, path + ": " + std::generic_category().message(errno));
  }
  while (::flock(file.get(), LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    return Error(Code::kUnavailable, path + ": " + std::generic_category().message(errno));
  }
  return file;
}

std::string serve(const HelperArguments& arguments, std::istream& in, bool& ok) {
  const auto failed = [&](const Error& error) {
    ok = false;
    return partition::write_answer(Status(error));
  };
  const Result<std::string> text = read_all_of(in, partition::kMaxHelperRequest);
  if (!text.ok()) return failed(text.error());
  const Result<partition::HelperRequest> request = partition::read_request(*text);
  if (!request.ok()) return failed(request.error());
  const Result<host::Fd> lock = take_lock(arguments.lock);
  if (!lock.ok()) return failed(lock.error());
  Result<nvml::MigControl> control =
      nvml::MigControl::open(arguments.library, arguments.driver_root);
  if (!control.ok()) return failed(control.error());
  BERTH_CRASH_POINT("mig-helper-before");
  if (!request->step) {
    const Result<std::vector<partition::MigGpu>> seen = control->look();
    ok = seen.ok();
    return partition::write_answer(seen);
  }
  const Status done = control->carry_out(*request->step);
  BERTH_CRASH_POINT("mig-helper-after");
  ok = done.ok();
  return partition::write_answer(done);
}

}  // namespace

int agent_helper_command(const HelperArguments& arguments, Terminal& terminal) {
  // The agent may be gone by the time of the answer: what was begun is ended all the same.
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c)
  bool ok = true;
  terminal.out << serve(arguments, terminal.in, ok);
  terminal.out.flush();
  return ok ? 0 : 1;
}

}  // namespace berth::app
