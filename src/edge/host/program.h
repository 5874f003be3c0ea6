// A program that is run once: bytes in, bytes out, an end or a deadline. No shell.
//
// posix_spawn with the arguments and the environment as given; nothing else of ours is open in it.
// At the deadline it is killed; one that the kernel does not let go (a driver that hangs) is left
// behind, and the answer comes all the same. When the owner goes, a program that runs is not
// killed: it ends by itself, and nobody hears of it. One call at a time for each Program.
//
// On the loop's thread; the waiting is done by a thread of its own. Answers come on the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/result.h"

namespace berth::host {

struct ProgramCall {
  std::string path;
  std::vector<std::string> arguments;    // without the program's name
  std::vector<std::string> environment;  // "NAME=value"
  std::string input;
  std::int64_t deadline_ns = 60'000'000'000;
  std::size_t most_output = 1 << 20;  // more is an error
};

struct ProgramEnd {
  int code = 0;     // 128 + n: by signal n
  std::string out;  // stdout
  std::string err;  // the beginning of stderr, at most 4 KiB
};

class Program {
 public:
  explicit Program(Loop& loop);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // kUnavailable: it could not be started, or did not end in time. Not while one runs.
  void run(ProgramCall call, std::function<void(Result<ProgramEnd>)> done);
  bool running() const;

 private:
  struct Box;
  static void tell(const std::shared_ptr<Box>& box, Program* self, Result<ProgramEnd> end);

  Loop& loop_;
  std::shared_ptr<Box> box_;
};

}  // namespace berth::host
