#include "base/private_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace berth {
namespace {

namespace fs = std::filesystem;

class PrivateFile : public testing::Test {
 protected:
  PrivateFile() {
    std::string pattern = testing::TempDir() + "/berth-private-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    umask_ = ::umask(0);
  }
  ~PrivateFile() override {
    ::umask(umask_);
    fs::remove_all(folder_);
  }
  static int rights(const std::string& path) {
    return static_cast<int>(fs::status(path).permissions());
  }
  static Status opened(const std::string& path, int flags) {
    const Result<int> fd = open_private(path, flags);
    if (!fd.ok()) return fd.error();
    ::close(*fd);
    return {};
  }

  std::string folder_;
  mode_t umask_ = 0;
};

TEST_F(PrivateFile, ANewOneIsItsOwnersAlone) {
  for (const mode_t mask : {0000U, 0022U, 0477U}) {
    ::umask(mask);
    const std::string folder = folder_ + "/made-" + std::to_string(mask), path = folder + "/file";
    if (mask == 0477) fs::create_directory(folder), fs::permissions(folder, fs::perms(0700));
    ASSERT_TRUE(opened(path, O_WRONLY | O_CREAT).ok());
    EXPECT_EQ(rights(path), 0600);
    EXPECT_EQ(rights(folder), 0700);
  }
  EXPECT_EQ(opened(folder_ + "/none", O_RDONLY).error().code(), Code::kNotFound);
  EXPECT_FALSE(opened(folder_ + "/no/such/folder", O_WRONLY | O_CREAT).ok());
}

TEST_F(PrivateFile, OneThatIsThereIsNarrowed) {
  const std::string path = folder_ + "/old";
  std::ofstream(path) << "kept";
  fs::permissions(path, fs::perms(0664));
  ASSERT_TRUE(opened(path, O_WRONLY | O_APPEND | O_CREAT).ok());
  EXPECT_EQ(rights(path), 0600);
  EXPECT_EQ(fs::file_size(path), 4U);
  fs::permissions(path, fs::perms(0644));
  ASSERT_TRUE(narrow_file(path).ok());
  EXPECT_EQ(rights(path), 0600);
  EXPECT_TRUE(narrow_file(folder_ + "/none").ok());
  ASSERT_TRUE(opened(path, O_WRONLY | O_TRUNC).ok());
  EXPECT_EQ(fs::file_size(path), 0U);

  fs::permissions(folder_, fs::perms(0755));
  ASSERT_TRUE(opened(path, O_WRONLY | O_CREAT).ok());
  EXPECT_EQ(rights(folder_), 0755) << "a folder of logs may be somebody else's too";
  ASSERT_TRUE(make_private_folder(folder_).ok());
  EXPECT_EQ(rights(folder_), 0700);
  ASSERT_TRUE(make_private_folder(folder_ + "/new").ok());
  EXPECT_EQ(rights(folder_ + "/new"), 0700);
  EXPECT_FALSE(make_private_folder(path).ok());
}

TEST_F(PrivateFile, LinksPipesAndOthersFilesAreRefused) {
  const std::string target = folder_ + "/target", link = folder_ + "/link";
  std::ofstream(target) << "of somebody else";
  fs::create_symlink(target, link);
  for (const Status& status : {opened(link, O_WRONLY | O_CREAT | O_TRUNC), narrow_file(link)}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().to_string(), link + " is a symbolic link; want the file itself");
  }
  EXPECT_EQ(fs::file_size(target), 16U);
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(opened(folder_ + "/pipe", O_WRONLY | O_CREAT).ok());
  EXPECT_FALSE(opened(folder_, O_RDONLY).ok());
  if (::geteuid() != 0) return;  // to give a file away
  ASSERT_EQ(::chown(target.c_str(), 12345, 12345), 0);
  const Status status = opened(target, O_WRONLY | O_TRUNC);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().to_string().find("belongs to user 12345"), std::string::npos);
  EXPECT_EQ(fs::file_size(target), 16U);
}

}  // namespace
}  // namespace berth
