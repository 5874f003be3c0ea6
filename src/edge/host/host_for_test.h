// A folder of the test's own, and a loop in real time that gives up after a minute.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/run_loop.h"
#include "base/system_clock.h"

namespace berth::host {

class TestFolder {
 public:
  TestFolder() {
    std::string pattern = testing::TempDir() + "berth-host-XXXXXX";
    path_ = std::filesystem::canonical(::mkdtemp(pattern.data())).string();
  }
  ~TestFolder() {
    std::error_code failed;
    std::filesystem::remove_all(path_, failed);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string at(const std::string& below) const { return path_ + "/" + below; }

  void write(const std::string& below, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(at(below)).parent_path());
    std::ofstream(at(below), std::ios::binary) << text;
  }
  void folder(const std::string& below) const { std::filesystem::create_directories(at(below)); }
  void link(const std::string& below, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(at(below)).parent_path());
    std::filesystem::create_symlink(target, at(below));
  }

 private:
  std::string path_;
};

struct RealLoop {
  SystemMonotonicClock monotonic;
  SystemWallClock wall;
  RunLoop loop{monotonic, wall};

  bool run_until(const std::function<bool()>& done) {
    bool late = false;
    const Loop::Timer timer = loop.after(60'000'000'000, [&] {
      late = true;
      loop.stop();
    });
    std::function<void()> look = [&] {
      if (done()) return loop.stop();
      loop.after(500'000, look);
    };
    look();
    loop.run();
    loop.cancel(timer);
    return !late;
  }
};

}  // namespace berth::host
