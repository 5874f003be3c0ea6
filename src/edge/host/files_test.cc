#include <sys/stat.h>

#include "edge/host/host.h"
#include "edge/host/host_for_test.h"
#include "edge/host/paths.h"

namespace berth::host {
namespace {

int mode_of(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<int>(status.st_mode & 07777) : -1;
}

TEST(Files, WritesTheWholeFile) {
  const TestFolder folder;
  const std::string path = folder.at("a/b/spec.json");
  ASSERT_TRUE(write_atomically(path, "one").ok());
  EXPECT_EQ(mode_of(path), 0644);
  const std::string large(3'000'000, 'x');
  ASSERT_TRUE(write_atomically(path, large, 0600).ok());
  EXPECT_EQ(read_text(path).value(), large);
  EXPECT_EQ(mode_of(path), 0600);
  EXPECT_EQ(names_in(folder.at("a/b")), std::vector<std::string>{"spec.json"});
}

TEST(Files, ReplacesALinkAndLeavesItsTargetAlone) {
  const TestFolder folder;
  folder.write("target", "keep");
  folder.link("spec.json", "target");
  ASSERT_TRUE(write_atomically(folder.at("spec.json"), "new").ok());
  EXPECT_EQ(read_text(folder.at("target")).value(), "keep");
  EXPECT_EQ(read_text(folder.at("spec.json")).value(), "new");
}

TEST(Files, AppendsToPlainFilesAlone) {
  const TestFolder folder;
  ASSERT_TRUE(append_line(folder.at("journal"), "one\n").ok());
  ASSERT_TRUE(append_line(folder.at("journal"), "two\n").ok());
  EXPECT_EQ(read_text(folder.at("journal")).value(), "one\ntwo\n");
  EXPECT_EQ(mode_of(folder.at("journal")), 0600);

  folder.write("target", "keep");
  folder.link("planted", "target");
  folder.link("dangling", "nowhere");
  folder.folder("folder");
  ASSERT_EQ(::mkfifo(folder.at("pipe").c_str(), 0600), 0);
  for (const char* name : {"planted", "dangling", "folder", "pipe", "missing/journal"}) {
    EXPECT_FALSE(append_line(folder.at(name), "x\n").ok()) << name;
  }
  EXPECT_EQ(append_line(folder.at("planted"), "x\n").error().message(),
            folder.at("planted") + ": found a link, want a file; remove it");
  EXPECT_EQ(read_text(folder.at("target")).value(), "keep");
  EXPECT_EQ(read_text(folder.at("nowhere")).error().code(), Code::kNotFound);
}

TEST(Files, SaysWhatCannotBeWritten) {
  const TestFolder folder;
  folder.write("file", "x");
  folder.folder("taken/inside");
  for (const std::string& path :
       {folder.at("file/below"), folder.at("taken"), folder.at("slash/"), std::string()}) {
    const Status status = write_atomically(path, "x");
    ASSERT_FALSE(status.ok()) << path;
  }
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"file", "taken"}))
      << "temporary files are removed";
}

TEST(Files, ReadsUpToABound) {
  const TestFolder folder;
  folder.write("f", "12345");
  EXPECT_EQ(read_text(folder.at("f"), 5).value(), "12345");
  EXPECT_EQ(read_text(folder.at("f"), 4).error().code(), Code::kExhausted);
  EXPECT_EQ(read_text(folder.at("g")).error().code(), Code::kNotFound);
  EXPECT_EQ(read_text(folder.path()).error().code(), Code::kUnavailable);
  ASSERT_EQ(::mkfifo(folder.at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_text(folder.at("pipe")).value(), "") << "without a writer there is nothing";
}

TEST(Files, FollowsLinksInsideARootOnly) {
  const TestFolder outside;
  outside.write("secret", "x");
  const TestFolder root;
  root.write("usr/lib/libcuda.so.1", "x");
  root.link("lib", "usr/lib");
  root.link("abs", "/usr/lib/libcuda.so.1");
  root.link("up", "../../../../usr/lib/libcuda.so.1");
  root.link("out", outside.at("secret"));
  root.link("climb", "../" + std::filesystem::path(outside.path()).filename().string() + "/secret");
  root.link("loop", "loop");
  root.link("gone", "nowhere");
  const struct {
    const char *path, *ends;  // nullptr: nowhere
  } cases[] = {{"/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1"},
               {"/lib/libcuda.so.1", "/usr/lib/libcuda.so.1"},
               {"/abs", "/usr/lib/libcuda.so.1"},
               {"/up", "/usr/lib/libcuda.so.1"},
               {"/../../abs", "/usr/lib/libcuda.so.1"},
               {"/lib/../lib/./libcuda.so.1", "/usr/lib/libcuda.so.1"},
               {"/", "/"},
               {"/out", nullptr},
               {"/climb", nullptr},
               {"/loop", nullptr},
               {"/gone", nullptr},
               {"/usr/lib/libcuda.so.1/x", nullptr}};
  for (const auto& c : cases) {
    const auto found = resolve_below(root.path(), c.path);
    ASSERT_EQ(found.has_value(), c.ends != nullptr) << c.path;
    EXPECT_EQ(found.value_or(""), c.ends == nullptr ? "" : c.ends) << c.path;
  }
}

TEST(Files, JoinsRoots) {
  EXPECT_EQ(below("/", "/dev"), "/dev");
  EXPECT_EQ(below("", "/dev"), "/dev");
  EXPECT_EQ(below("/run/driver/", "/dev"), "/run/driver/dev");
  EXPECT_EQ(below("/run/driver", "dev"), "/run/driver/dev");
}

}  // namespace
}  // namespace berth::host
