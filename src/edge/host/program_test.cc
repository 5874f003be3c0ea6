#include "edge/host/program.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/run_loop.h"
#include "base/system_clock.h"

namespace berth::host {
namespace {

// Runs one program to its end on a loop of its own. Real time; deadlines are generous, or short
// where they must pass.
Result<ProgramEnd> end_of(ProgramCall call) {
  const SystemMonotonicClock monotonic;
  const SystemWallClock wall;
  RunLoop loop(monotonic, wall);
  Program program(loop);
  Result<ProgramEnd> got = invalid("never told");
  program.run(std::move(call), [&](Result<ProgramEnd> end) {
    got = std::move(end);
    loop.stop();
  });
  EXPECT_TRUE(program.running());
  loop.run();
  EXPECT_FALSE(program.running());
  return got;
}

ProgramCall shell(const std::string& script) {
  ProgramCall call;
  call.path = "/bin/sh";
  call.arguments = {"-c", script};
  return call;
}

TEST(Program, BytesGoInAndComeOut) {
  ProgramCall call;
  call.path = "/bin/cat";
  call.input.assign(300'000, 'x');  // more than a pipe holds
  const auto end = end_of(call);
  ASSERT_TRUE(end.ok()) << end.error().to_string();
  EXPECT_EQ(end->code, 0);
  EXPECT_EQ(end->out, call.input);
}

TEST(Program, ItsEnvironmentIsWhatWasGiven) {
  ProgramCall call = shell("echo \"$A-$HOME\"; echo oops >&2; exit 3");
  call.environment = {"A=b"};
  const auto end = end_of(call);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->out, "b-\n");
  EXPECT_EQ(end->err, "oops\n");
  EXPECT_EQ(end->code, 3);
}

TEST(Program, OneThatDoesNotReadOrEndsBySignalIsToldOf) {
  ProgramCall call = shell("kill -9 $$");
  call.input.assign(300'000, 'x');
  const auto end = end_of(call);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->code, 137);
}

TEST(Program, ADeadlineKillsIt) {
  ProgramCall call = shell("exec sleep 1000");
  call.deadline_ns = 50'000'000;
  const auto end = end_of(call);
  ASSERT_FALSE(end.ok());
  EXPECT_NE(end.error().to_string().find("it was killed"), std::string::npos);
}

TEST(Program, TooMuchOutputIsAnError) {
  ProgramCall call = shell("head -c 5000 /dev/zero");
  call.most_output = 4'999;
  EXPECT_FALSE(end_of(call).ok());
  call.most_output = 5'000;
  EXPECT_TRUE(end_of(call).ok());
}

TEST(Program, WhatIsNotThereIsToldOf) {
  ProgramCall call;
  call.path = "/no/such/program";
  const auto end = end_of(call);
  ASSERT_FALSE(end.ok());
  EXPECT_NE(end.error().to_string().find("/no/such/program"), std::string::npos);
}

TEST(Program, AnOwnerThatGoesHearsNothing) {
  const SystemMonotonicClock monotonic;
  const SystemWallClock wall;
  RunLoop loop(monotonic, wall);
  auto program = std::make_unique<Program>(loop);
  program->run(shell("exit 0"), [](const Result<ProgramEnd>&) { FAIL() << "its owner is gone"; });
  program.reset();
  // Another one that ends later: whatever the first posted has run by then.
  Program second(loop);
  second.run(shell("exit 0"), [&](const Result<ProgramEnd>&) { loop.stop(); });
  loop.run();
  loop.run_ready();
}

}  // namespace
}  // namespace berth::host
