#include "agent/mig_helper.h"

#include <utility>

namespace berth::agent {

namespace {

// What a helper said, or what is wrong with it.
Result<std::vector<partition::MigGpu>> understand(const Result<host::ProgramEnd>& end) {
  if (!end.ok()) return end.error();
  Result<std::vector<partition::MigGpu>> read = partition::read_answer(end->out);
  if (read.ok() && end->code == 0) return read;
  // An answer that it did not write is no answer.
  if (!end->out.empty() && end->code <= 1) return read;
  const std::size_t line = end->err.find('\n');
  return Error(Code::kUnavailable, "the helper ended with code " + std::to_string(end->code) +
                                       (end->err.empty() ? "" : ": " + end->err.substr(0, line)));
}

}  // namespace

MigHelper::MigHelper(Loop& loop, MigHelperOptions options)
    : options_(std::move(options)), program_(loop) {}
MigHelper::~MigHelper() = default;

void MigHelper::look(std::function<void(Result<std::vector<partition::MigGpu>>)> done) {
  ask({std::nullopt}, std::move(done));
}

void MigHelper::carry_out(const partition::MigStep& step, std::function<void(Status)> done) {
  ask({step}, [done = std::move(done)](const Result<std::vector<partition::MigGpu>>& answer) {
    done(answer.ok() ? Status() : Status(answer.error()));
  });
}

void MigHelper::ask(const partition::HelperRequest& request, Done done) {
  asks_.push_back({partition::write_request(request), std::move(done)});
  if (asks_.size() == 1) next();
}

void MigHelper::next() {
  host::ProgramCall call;
  call.path = options_.path;
  call.arguments = options_.arguments;
  call.environment = options_.environment;
  call.input = asks_.front().request;
  call.deadline_ns = options_.deadline_ns;
  call.most_output = partition::kMaxHelperAnswer;
  program_.run(std::move(call), [this](const Result<host::ProgramEnd>& end) {
    const Done done = std::move(asks_.front().done);
    asks_.pop_front();
    if (!asks_.empty()) next();
    done(understand(end));
  });
}

}  // namespace berth::agent
