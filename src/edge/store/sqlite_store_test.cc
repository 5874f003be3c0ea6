#include "edge/store/sqlite_store.h"

#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "edge/store/store_suite_for_test.h"

namespace berth::store {
namespace {

class SqliteStoreTest : public testing::Test {
 protected:
  SqliteStoreTest() {
    std::string pattern = testing::TempDir() + "berth-store-XXXXXX";
    dir_ = mkdtemp(pattern.data());
    path_ = dir_ + "/store.db";
  }
  ~SqliteStoreTest() override { std::filesystem::remove_all(dir_); }

  std::string refusal() {  // why the file is not opened; empty: it is
    auto opened = open_sqlite({path_}, on_.loop);
    return opened.ok() ? "" : opened.error().to_string();
  }
  void foreign(const char* sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  std::string dir_, path_;
  StoreLoop on_;
};

TEST_F(SqliteStoreTest, KeepsTheSuite) {
  for (bool sync : {false, true}) {
    SqliteOptions options{path_ + (sync ? "-full" : ""), sync};
    check_store(
        [&](Loop& loop) {
          auto opened = open_sqlite(options, loop);
          return opened.ok() ? std::move(*opened) : nullptr;
        },
        true);
  }
}

TEST_F(SqliteStoreTest, RefusesFilesThatAreNotItsOwn) {
  struct {
    const char* what;
    std::function<void()> make;
    const char* says;
  } cases[] = {
      {"text", [&] { std::ofstream(path_) << std::string(5'000, 'x'); }, "not a berth store"},
      {"another program", [&] { foreign("CREATE TABLE t(a); INSERT INTO t VALUES(1);"); },
       "another program"},
      {"another id", [&] { foreign("PRAGMA application_id=7; CREATE TABLE t(a);"); },
       "another program"},
      {"a later format",
       [&] {
         EXPECT_EQ(refusal(), "");
         foreign("PRAGMA user_version=3;");
       },
       "format 3"},
      {"no latest version",
       [&] {
         EXPECT_EQ(refusal(), "");
         foreign("DELETE FROM latest;");
       },
       "damaged"},
      {"no directory", [&] { path_ = dir_ + "/none/store.db"; }, "unable to open"},
      {"a directory", [&] { path_ = dir_; }, "no plain file"},
      {"no name", [&] { path_ = ""; }, "path"},
  };
  for (auto& c : cases) {
    SCOPED_TRACE(c.what);
    std::filesystem::remove(path_);
    c.make();
    std::string said = refusal();
    EXPECT_NE(said.find(c.says), std::string::npos) << said;
    EXPECT_NE(said.find(path_), std::string::npos) << said;
  }
}

// It holds every object of a cluster, environment and all.
TEST_F(SqliteStoreTest, IsItsOwnersAlone) {
  const mode_t before = ::umask(0);
  {
    auto store = open_sqlite({path_}, on_.loop);
    ASSERT_TRUE(store.ok()) << store.error().to_string();
    int files = 0;
    for (const auto& file : std::filesystem::directory_iterator(dir_)) {
      EXPECT_EQ(static_cast<int>(file.status().permissions()), 0600) << file.path();
      ++files;
    }
    EXPECT_GE(files, 2) << "the database and its log";
  }
  ::umask(before);
  std::filesystem::permissions(path_, std::filesystem::perms(0644));
  std::ofstream(path_ + "-journal") << "";
  std::filesystem::permissions(path_ + "-journal", std::filesystem::perms(0666));
  EXPECT_TRUE(open_sqlite({path_}, on_.loop).ok()) << "one from before is narrowed";
  EXPECT_EQ(static_cast<int>(std::filesystem::status(path_).permissions()), 0600);
  std::filesystem::rename(path_, path_ + ".elsewhere");
  std::filesystem::create_symlink(path_ + ".elsewhere", path_);
  EXPECT_NE(refusal().find("symbolic link"), std::string::npos) << refusal();
}

TEST_F(SqliteStoreTest, RefusesADamagedFileOrReadsItRight) {
  {
    auto store = open_sqlite({path_}, on_.loop);
    ASSERT_TRUE(store.ok());
    std::vector<Write> writes;
    for (int i = 0; i < 500; ++i)
      writes.push_back({"k" + std::to_string(i), std::string(300, 'v')});
    ASSERT_TRUE(commit_and_wait(on_, **store, writes, 1).ok());
  }
  std::ifstream in(path_, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  ASSERT_GT(whole.size(), 100'000u);
  Random random(11);
  int refused = 0;
  for (int i = 0; i < 30; ++i) {
    std::string bytes = whole;
    if (i % 3 == 0) bytes.resize(random.below(bytes.size()));
    for (std::uint64_t n = 40; i % 3 != 0 && n > 0; --n) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    std::filesystem::remove(path_ + "-wal");
    std::ofstream(path_, std::ios::binary) << bytes;
    auto store = open_sqlite({path_}, on_.loop);
    if (!store.ok()) {
      ++refused;
      continue;
    }
    [[maybe_unused]] auto version = (*store)->load([](auto, auto, auto) {});  // no crash
  }
  EXPECT_GT(refused, 5);
}

TEST_F(SqliteStoreTest, OneOwnerAtATime) {
  // The other process is there before the file is opened, so that it has nothing of ours.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    char go = 0;
    if (read(ends[0], &go, 1) != 1) _exit(2);
    _exit(refusal() == path_ + ": in use by another process" ? 0 : 1);
  }
  auto first = open_sqlite({path_}, on_.loop);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(refusal(), path_ + ": in use by another process");
  ASSERT_EQ(write(ends[1], "g", 1), 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(ends[0]);
  close(ends[1]);
  EXPECT_TRUE(commit_and_wait(on_, **first, {{"a", "1"}}, 1).ok());
  first->reset();
  EXPECT_EQ(refusal(), "");
}

// A file without checksums is taken, and gets them with what is written from then on.
TEST_F(SqliteStoreTest, ReadsTheFormatBefore) {
  foreign(
      "PRAGMA application_id=1651668072; PRAGMA user_version=1;"
      "CREATE TABLE entries(id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL,"
      " version INTEGER NOT NULL); CREATE TABLE latest(version INTEGER NOT NULL);"
      "INSERT INTO latest VALUES(7); INSERT INTO entries VALUES(1, x'61', x'31', 7);");
  for (int round = 0; round < 2; ++round) {
    auto store = open_sqlite({path_}, on_.loop);
    ASSERT_TRUE(store.ok()) << store.error().to_string();
    const Loaded found = load_all(**store);
    EXPECT_EQ(found.entries.at("a"), std::pair(std::string("1"), std::uint64_t{7}));
    if (round == 0) {
      ASSERT_TRUE(commit_and_wait(on_, **store, {{"b", "2"}}, 8).ok());
    }
    EXPECT_EQ(load_all(**store).version, 8u);
  }
}

// One bit inside a value, which leaves SQLite's pages in good order.
TEST_F(SqliteStoreTest, NoticesABitThatFlippedInAValue) {
  {
    auto store = open_sqlite({path_}, on_.loop);
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE(commit_and_wait(on_, **store,
                                {{"pods/a", "{\"replicas\": 1, \"here\": true}"}, {"x", "1"}}, 1)
                    .ok());
  }
  std::ifstream in(path_, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::size_t at = bytes.find("\"replicas\": 1");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 12] = '3';  // still JSON
  std::ofstream(path_, std::ios::binary) << bytes;
  auto store = open_sqlite({path_}, on_.loop);
  ASSERT_TRUE(store.ok()) << store.error().to_string();
  const auto loaded = (*store)->load([](auto, auto, auto) {});
  ASSERT_FALSE(loaded.ok());
  const std::string said = loaded.error().to_string();
  for (const char* word : {path_.c_str(), "pods/a", "checksum", "move it"}) {
    EXPECT_NE(said.find(word), std::string::npos) << said;
  }
}

TEST_F(SqliteStoreTest, RefusesACutFileAndSaysWhatToDo) {
  {
    auto store = open_sqlite({path_}, on_.loop);
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE(commit_and_wait(on_, **store, {{"a", std::string(100'000, 'v')}}, 1).ok());
  }
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  const std::string said = refusal();
  EXPECT_NE(said.find("damaged"), std::string::npos) << said;
  EXPECT_NE(said.find("move it"), std::string::npos) << said;
}

// A disk that is full, as the kernel says it: files may not grow further.
TEST_F(SqliteStoreTest, AFullDiskRefusesAndIsTriedAgain) {
  auto store = open_sqlite({path_}, on_.loop);
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(commit_and_wait(on_, **store, {{"a", "1"}}, 1).ok());
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 200'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);

  // Several under way at once: the first does not fit, and what was called after it goes with it.
  std::vector<Status> answers;
  const std::string large(500'000, 'x');
  (*store)->commit({{"large", large}}, 2, [&](Status s) { answers.push_back(std::move(s)); });
  (*store)->commit({{"after", "1"}}, 3, [&](Status s) { answers.push_back(std::move(s)); });
  on_.run_until([&] { return answers.size() == 2; });
  for (const Status& answer : answers) {
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code(), Code::kExhausted) << answer.error().to_string();
    EXPECT_NE(answer.error().to_string().find("no space left"), std::string::npos);
  }
  EXPECT_FALSE(commit_and_wait(on_, **store, {{"b", "1"}}, 4).ok()) << "the owner did not resume";
  Loaded found = load_all(**store);
  EXPECT_EQ(found.entries.size(), 1u);
  EXPECT_EQ(found.version, 1u);

  // What fits is taken while it is still full; and all of it when there is room again.
  (*store)->resume();
  EXPECT_TRUE(commit_and_wait(on_, **store, {{"b", "1"}}, 5).ok());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(commit_and_wait(on_, **store, {{"large", large}}, 6).ok());
  std::signal(SIGXFSZ, old_handler);
  store->reset();
  store = open_sqlite({path_}, on_.loop);
  ASSERT_TRUE(store.ok()) << store.error().to_string();
  found = load_all(**store);
  EXPECT_EQ(found.version, 6u);
  EXPECT_EQ(found.entries.at("large").first, large);
  EXPECT_FALSE(found.entries.contains("after"));
}

TEST_F(SqliteStoreTest, TooMuchWaitingIsRefusedUntilItResumes) {
  auto store = open_sqlite({path_, false, 100'000}, on_.loop);
  ASSERT_TRUE(store.ok());
  EXPECT_TRUE(commit_and_wait(on_, **store, {{"a", "1"}}, 1).ok());
  Status large = commit_and_wait(on_, **store, {{"b", std::string(200'000, 'x')}}, 2);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code(), Code::kExhausted);
  EXPECT_FALSE(commit_and_wait(on_, **store, {{"c", "1"}}, 3).ok());
  EXPECT_EQ(load_all(**store).version, 1u);
  (*store)->resume();
  EXPECT_TRUE(commit_and_wait(on_, **store, {{"c", "1"}}, 4).ok());
  EXPECT_EQ(load_all(**store).version, 4u);
}

// Writes batches until it is killed, and says through the pipe which versions were acknowledged.
[[noreturn]] void write_until_killed(const std::string& path, std::uint64_t seed, int pipe_end) {
  StoreLoop on;
  auto store = open_sqlite({path}, on.loop);
  if (!store.ok()) _exit(1);
  Random random(seed);
  std::uint64_t version = load_all(**store).version;
  std::size_t outstanding = 0;
  std::function<void()> more = [&] {
    while (outstanding < 50) {
      ++version;
      ++outstanding;
      // Every batch appends "n/<version>" and rewrites one of a few keys in two places.
      std::string spot = std::to_string(random.below(20)), value = std::to_string(version);
      std::vector<Write> writes = {{"n/" + value, std::string(random.below(3'000), 'x')},
                                   {"left/" + spot, value},
                                   {"right/" + spot, value}};
      (*store)->commit(std::move(writes), version, [&, acknowledged = version](Status status) {
        if (!status.ok()) _exit(2);
        if (write(pipe_end, &acknowledged, sizeof acknowledged) != sizeof acknowledged) _exit(3);
        --outstanding;
        more();
      });
    }
  };
  on.loop.post(more);
  on.loop.run();
  _exit(4);
}

TEST_F(SqliteStoreTest, EverythingAcknowledgedSurvivesAKill) {
  Random random(20'26);
  std::uint64_t acknowledged = 0;
  for (int round = 0; round < 6; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      write_until_killed(path_, random.next(), ends[1]);
    }
    close(ends[1]);
    // Killed at a moment that the seed says, in terms of what it did and not of time.
    std::uint64_t until = acknowledged + 1 + random.below(400), last = acknowledged, seen = 0;
    while (seen < until && read(ends[0], &seen, sizeof seen) == sizeof seen) {
      ASSERT_EQ(seen, last + 1) << "acknowledged out of order";
      last = seen;
    }
    kill(child, SIGKILL);
    while (read(ends[0], &seen, sizeof seen) == sizeof seen) last = seen;
    close(ends[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    acknowledged = last;

    auto store = open_sqlite({path_}, on_.loop);
    ASSERT_TRUE(store.ok()) << store.error().to_string();
    Loaded found = load_all(**store);
    EXPECT_GE(found.version, acknowledged);
    for (std::uint64_t v = 1; v <= found.version; ++v) {
      ASSERT_TRUE(found.entries.contains("n/" + std::to_string(v))) << "a gap";
    }
    EXPECT_FALSE(found.entries.contains("n/" + std::to_string(found.version + 1)));
    for (int spot = 0; spot < 20; ++spot) {
      EXPECT_EQ(found.entries["left/" + std::to_string(spot)],
                found.entries["right/" + std::to_string(spot)]);
    }
    acknowledged = found.version;
  }
}

}  // namespace
}  // namespace berth::store
