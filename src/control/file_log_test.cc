#include "control/file_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace berth::control {
namespace {

std::string log_content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(FileDecisionLog, TwoFilesOfABound) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "berth-file-log";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "decisions.jsonl").string();
  {
    FileDecisionLog log(path, 10);
    ASSERT_TRUE(log.open().ok());
    log.write("one");
    log.write("two");
  }
  {
    FileDecisionLog log(path, 10);  // goes on where the first ended
    log.write("three");
    EXPECT_EQ(log_content(path + ".1"), "one\ntwo\n");
    EXPECT_EQ(log_content(path), "three\n");
    log.write("a line longer than the bound");
    log.write("four");
    EXPECT_EQ(log_content(path), "four\n");
    EXPECT_EQ(log.failures(), 0u);
  }
  EXPECT_EQ(static_cast<int>(std::filesystem::status(path).permissions()), 0600);
  EXPECT_EQ(static_cast<int>(std::filesystem::status(path + ".1").permissions()), 0600);
  FileDecisionLog nowhere((folder / "no" / "such" / "file").string());
  EXPECT_FALSE(nowhere.open().ok());
  nowhere.write("lost");
  EXPECT_EQ(nowhere.failures(), 1u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace berth::control
