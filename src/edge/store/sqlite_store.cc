#include "edge/store/sqlite_store.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "base/crash_point.h"
#include "base/mutex.h"
#include "base/private_file.h"

namespace berth::store {
namespace {

constexpr int kApplication = 0x62727468;  // "brth", in the file's head
constexpr int kSchema = 2;

constexpr const char* kMakeSchema =
    "CREATE TABLE entries(id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL,"
    " version INTEGER NOT NULL, sum INTEGER);"
    "CREATE TABLE latest(version INTEGER NOT NULL);"
    "INSERT INTO latest VALUES(0);"
    "PRAGMA application_id=1651668072;"
    "PRAGMA user_version=2;";
static_assert(kApplication == 1'651'668'072 && kSchema == 2, "kMakeSchema spells them out");

// Format 1 had no checksums; what it wrote has none until it is written again.
constexpr const char* kFromFormat1 =
    "ALTER TABLE entries ADD COLUMN sum INTEGER;"
    "PRAGMA user_version=2;";

// Of an entry, so that a bit that flips inside a value is noticed: SQLite checks its pages' shape
// and not what they hold. FNV-1a, 64 bits: against accidents, not against people.
std::int64_t sum_of(std::string_view key, std::string_view value, std::uint64_t version) {
  std::uint64_t sum = 0xcbf29ce484222325;
  const auto add = [&sum](unsigned char byte) { sum = (sum ^ byte) * 0x100000001b3; };
  for (const char c : key) add(static_cast<unsigned char>(c));
  add(0xff);  // in no key
  for (const char c : value) add(static_cast<unsigned char>(c));
  for (int i = 0; i < 8; ++i) add(static_cast<unsigned char>(version >> (8 * i)));
  return static_cast<std::int64_t>(sum);
}

Error damaged(const std::string& path, const std::string& why) {
  return {Code::kInvalid, path + ": damaged (" + why +
                              "); put a copy back in its place, or move it and its -wal file away "
                              "to begin anew"};
}

struct CloseDb {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Db = std::unique_ptr<sqlite3, CloseDb>;
using Statement = std::unique_ptr<sqlite3_stmt, CloseDb>;

// What SQLite says, in terms of the file.
Error sqlite_error(sqlite3* db, const std::string& path) {
  const int cause = errno;  // of the system call that failed, when it was one
  int code = db == nullptr ? SQLITE_NOMEM : sqlite3_errcode(db);
  const char* said = db == nullptr ? "out of memory" : sqlite3_errmsg(db);
  switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {Code::kConflict, path + ": in use by another process"};
    case SQLITE_NOTADB:
      return {Code::kInvalid, path + ": not a berth store (not a SQLite file)"};
    case SQLITE_CORRUPT:
      return damaged(path, said);
    case SQLITE_FULL:
      return {Code::kExhausted, path + ": no space left"};
    default:
      break;
  }
  // A quota and a bound on the size of files are a full disk too; SQLite calls them I/O errors.
  if ((code & 0xFF) == SQLITE_IOERR && (cause == ENOSPC || cause == EDQUOT || cause == EFBIG)) {
    return {Code::kExhausted, path + ": no space left"};
  }
  return {Code::kUnavailable, path + ": " + said};
}

class Database {
 public:
  static Result<std::unique_ptr<Database>> open(const SqliteOptions& options);

  Status run(const char* sql) {
    if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error();
    return {};
  }
  Result<std::int64_t> number(const char* sql);
  Result<std::string> text(const char* sql);
  Error error() { return sqlite_error(db_.get(), path_); }

  Result<std::uint64_t> load(const Store::Visit& visit);
  Status apply(const std::vector<Write>& writes, std::uint64_t version);  // inside a transaction
  Status set_version(std::uint64_t version);

 private:
  explicit Database(std::string path) : path_(std::move(path)) {}
  Status prepare(const char* sql, Statement& into);
  Status check_file();
  Status step(sqlite3_stmt* statement);

  std::string path_;
  Db db_;
  Statement put_, remove_, version_;
};

// SQLite gives its own files beside this one the rights that it has; older ones are narrowed here.
// What else is wrong with the path SQLite says.
Status make_private(const std::string& path) {
  constexpr mode_t kOwn = S_IRUSR | S_IWUSR;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kOwn);
  if (fd >= 0) ::close(fd);
  for (const char* beside : {"", "-wal", "-shm", "-journal"}) {
    BERTH_CHECK(narrow_file(path + beside));
  }
  return {};
}

Result<std::unique_ptr<Database>> Database::open(const SqliteOptions& options) {
  BERTH_CHECK(make_private(options.path));
  std::unique_ptr<Database> opened(new Database(options.path));
  sqlite3* db = nullptr;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  int code = sqlite3_open_v2(options.path.c_str(), &db, flags, nullptr);
  opened->db_.reset(db);
  if (code != SQLITE_OK) return opened->error();
  sqlite3_extended_result_codes(db, 1);
  sqlite3_busy_timeout(db, 0);
  // Locked from the first look on and for as long as it is open: the lock of a process that died
  // goes with it. Before WAL is asked for, so that the index of the WAL stays in our memory.
  BERTH_CHECK(opened->run("PRAGMA locking_mode=EXCLUSIVE;"));
  BERTH_CHECK(opened->check_file());
  BERTH_TRY(std::string mode, opened->text("PRAGMA journal_mode=WAL;"));
  if (mode != "wal")
    return Error(Code::kUnavailable, options.path + ": no WAL on this file system");
  BERTH_CHECK(
      opened->run(options.sync_every ? "PRAGMA synchronous=FULL;" : "PRAGMA synchronous=NORMAL;"));
  BERTH_CHECK(
      opened->run("PRAGMA journal_size_limit=67108864; PRAGMA temp_store=MEMORY;"
                  "BEGIN EXCLUSIVE; COMMIT;"));
  BERTH_TRY(std::int64_t application, opened->number("PRAGMA application_id;"));
  if (application == 0) {
    BERTH_CHECK(opened->run("BEGIN EXCLUSIVE;"));
    BERTH_CHECK(opened->run(kMakeSchema));
    BERTH_CHECK(opened->run("COMMIT;"));
  }
  BERTH_TRY(std::int64_t format, opened->number("PRAGMA user_version;"));
  if (format == 1) {
    BERTH_CHECK(opened->run("BEGIN EXCLUSIVE;"));
    BERTH_CHECK(opened->run(kFromFormat1));
    BERTH_CHECK(opened->run("COMMIT;"));
  }
  BERTH_CHECK(
      opened->prepare("INSERT INTO entries(key, value, version, sum) VALUES(?1, ?2, ?3, ?4)"
                      " ON CONFLICT(key) DO UPDATE SET value=?2, version=?3, sum=?4",
                      opened->put_));
  BERTH_CHECK(opened->prepare("DELETE FROM entries WHERE key=?1", opened->remove_));
  BERTH_CHECK(opened->prepare("UPDATE latest SET version=?1", opened->version_));
  return opened;
}

// Before anything is written: ours, whole, and of a version we know; or new.
Status Database::check_file() {
  BERTH_TRY(std::int64_t application, number("PRAGMA application_id;"));
  BERTH_TRY(std::int64_t tables, number("SELECT count(*) FROM sqlite_schema;"));
  if (application == 0 && tables == 0) return {};  // new, or its making was cut short
  if (application != kApplication) {
    return Error(Code::kInvalid, path_ + ": a database of another program");
  }
  BERTH_TRY(std::int64_t schema, number("PRAGMA user_version;"));
  if (schema < 1 || schema > kSchema) {
    return Error(Code::kInvalid, path_ + ": written in format " + std::to_string(schema) +
                                     ", this berth reads format " + std::to_string(kSchema));
  }
  BERTH_TRY(std::string whole, text("PRAGMA quick_check(1);"));
  if (whole != "ok") return damaged(path_, whole);
  BERTH_TRY(std::int64_t rows, number("SELECT count(*) FROM latest;"));
  if (rows != 1) return damaged(path_, "no latest version");
  return {};
}

Status Database::prepare(const char* sql, Statement& into) {
  sqlite3_stmt* made = nullptr;
  int code = sqlite3_prepare_v3(db_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr);
  into.reset(made);
  if (code != SQLITE_OK) return error();
  return {};
}

Result<std::int64_t> Database::number(const char* sql) {
  Statement statement;
  BERTH_CHECK(prepare(sql, statement));
  if (sqlite3_step(statement.get()) != SQLITE_ROW) return error();
  return static_cast<std::int64_t>(sqlite3_column_int64(statement.get(), 0));
}

Result<std::string> Database::text(const char* sql) {
  Statement statement;
  BERTH_CHECK(prepare(sql, statement));
  if (sqlite3_step(statement.get()) != SQLITE_ROW) return error();
  const unsigned char* found = sqlite3_column_text(statement.get(), 0);
  return std::string(found == nullptr ? "" : reinterpret_cast<const char*>(found));
}

std::string_view blob_of(sqlite3_stmt* statement, int column) {
  const void* data = sqlite3_column_blob(statement, column);
  auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  return data == nullptr ? std::string_view()
                         : std::string_view(static_cast<const char*>(data), size);
}

Result<std::uint64_t> Database::load(const Store::Visit& visit) {
  Statement rows;
  BERTH_CHECK(prepare("SELECT key, value, version, sum FROM entries ORDER BY key", rows));
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(rows.get())) == SQLITE_ROW) {
    const std::string_view key = blob_of(rows.get(), 0), value = blob_of(rows.get(), 1);
    const auto version = static_cast<std::uint64_t>(sqlite3_column_int64(rows.get(), 2));
    if (sqlite3_column_type(rows.get(), 3) != SQLITE_NULL &&
        sqlite3_column_int64(rows.get(), 3) != sum_of(key, value, version)) {
      return damaged(
          path_, "the entry " + std::string(key.substr(0, 200)) + " does not match its checksum");
    }
    visit(key, value, version);
  }
  if (code != SQLITE_DONE) return error();
  BERTH_TRY(std::int64_t latest, number("SELECT version FROM latest"));
  return static_cast<std::uint64_t>(latest);
}

Status Database::step(sqlite3_stmt* statement) {
  int code = sqlite3_step(statement);
  sqlite3_reset(statement);
  if (code != SQLITE_DONE) return error();
  return {};
}

void bind_bytes(sqlite3_stmt* statement, int at, const std::string& bytes) {
  // Static: the bytes outlive the step. An empty string is an empty blob and not NULL.
  sqlite3_bind_blob64(statement, at, bytes.empty() ? "" : bytes.data(), bytes.size(),
                      SQLITE_STATIC);
}

Status Database::apply(const std::vector<Write>& writes, std::uint64_t version) {
  for (const Write& write : writes) {
    sqlite3_stmt* statement = write.remove ? remove_.get() : put_.get();
    bind_bytes(statement, 1, write.key);
    if (!write.remove) {
      bind_bytes(statement, 2, write.value);
      sqlite3_bind_int64(statement, 3, static_cast<std::int64_t>(version));
      sqlite3_bind_int64(statement, 4, sum_of(write.key, write.value, version));
    }
    BERTH_CHECK(step(statement));
  }
  return {};
}

Status Database::set_version(std::uint64_t version) {
  sqlite3_bind_int64(version_.get(), 1, static_cast<std::int64_t>(version));
  return step(version_.get());
}

struct Batch {
  std::vector<Write> writes;
  std::uint64_t version = 0;
  std::function<void(Status)> done;
  std::size_t bytes = 0;
  std::uint64_t round = 0;  // how often the owner had resumed
};

class SqliteStore final : public Store {
 public:
  SqliteStore(std::unique_ptr<Database> database, const SqliteOptions& options, Loop& loop,
              std::uint64_t version, MetricsRegistry* metrics);
  ~SqliteStore() override;

  Result<std::uint64_t> load(const Visit& visit) override BERTH_EXCLUDES(database_mutex_);
  void commit(std::vector<Write> writes, std::uint64_t version,
              std::function<void(Status)> done) override BERTH_EXCLUDES(mutex_);
  void resume() override BERTH_EXCLUDES(mutex_);

 private:
  void work();
  std::deque<Batch> take_waiting() BERTH_EXCLUDES(mutex_);
  void settle(std::deque<Batch> batches, const Status& status) BERTH_EXCLUDES(mutex_);
  Status write_all(const std::deque<Batch>& batches) BERTH_EXCLUDES(database_mutex_);
  void answer(std::deque<Batch> batches, const Status& status);
  Status refusal(std::uint64_t version, std::size_t bytes) BERTH_REQUIRES(mutex_);

  const SqliteOptions options_;
  Loop& loop_;
  std::optional<Counter> commits_, batches_, refused_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // read on the loop's thread alone

  Mutex database_mutex_;
  std::unique_ptr<Database> database_ BERTH_GUARDED_BY(database_mutex_);

  Mutex mutex_;
  CondVar arrived_;
  std::deque<Batch> waiting_ BERTH_GUARDED_BY(mutex_);
  std::size_t queued_bytes_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t version_ BERTH_GUARDED_BY(mutex_);
  std::optional<Error> broken_ BERTH_GUARDED_BY(mutex_);
  std::optional<Error> full_ BERTH_GUARDED_BY(mutex_);  // until the owner resumes
  std::uint64_t round_ BERTH_GUARDED_BY(mutex_) = 0;
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

SqliteStore::SqliteStore(std::unique_ptr<Database> database, const SqliteOptions& options,
                         Loop& loop, std::uint64_t version, MetricsRegistry* metrics)
    : options_(options), loop_(loop), database_(std::move(database)), version_(version) {
  if (metrics != nullptr) {
    commits_ = metrics
                   ->counter({.name = "berth_store_commits_total",
                              .help = "Transactions written to the store's file."})
                   .get();
    batches_ = metrics
                   ->counter({.name = "berth_store_batches_total",
                              .help = "Batches made durable; many may go into one transaction."})
                   .get();
    refused_ = metrics
                   ->counter({.name = "berth_store_refused_total",
                              .help = "Batches refused because the disk was full or slow."})
                   .get();
  }
  thread_ = std::thread([this] { work(); });
}

SqliteStore::~SqliteStore() {
  *alive_ = false;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

Result<std::uint64_t> SqliteStore::load(const Visit& visit) {
  MutexLock lock(database_mutex_);
  return database_->load(visit);
}

Status SqliteStore::refusal(std::uint64_t version, std::size_t bytes) {
  if (!broken_ && version < version_) {
    broken_ =
        Error(Code::kInternal, options_.path + ": a commit's version is below the one before");
  }
  if (broken_) return *broken_;
  if (!full_ && queued_bytes_ + bytes > options_.max_queued_bytes) {
    full_ = Error(Code::kExhausted, options_.path + ": the disk does not keep up");
  }
  if (full_) return *full_;
  return {};
}

void SqliteStore::commit(std::vector<Write> writes, std::uint64_t version,
                         std::function<void(Status)> done) {
  Batch batch{std::move(writes), version, std::move(done), 64};
  for (const Write& write : batch.writes) {
    batch.bytes += sizeof write + write.key.size() + write.value.size();
  }
  {
    MutexLock lock(mutex_);
    Status refused = refusal(version, batch.bytes);
    // A refused batch stands in the line too, so that answers keep the order of the calls.
    if (refused.ok()) {
      version_ = version;
      queued_bytes_ += batch.bytes;
    } else {
      batch.writes.clear();
      batch.bytes = 0;
      batch.done = [told = std::move(batch.done), refused](const Status&) { told(refused); };
    }
    batch.round = round_;
    waiting_.push_back(std::move(batch));
  }
  arrived_.notify_one();
}

void SqliteStore::resume() {
  MutexLock lock(mutex_);
  if (!full_) return;
  full_.reset();
  ++round_;
}

void SqliteStore::work() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // they are for main
  pthread_setname_np(pthread_self(), "berth-store");
  std::optional<Error> failed;  // why the last transaction did
  std::uint64_t failed_round = 0;
  while (true) {
    std::deque<Batch> batches = take_waiting();
    if (batches.empty()) return;
    // What was called before the owner knew of the failure may build on what failed.
    std::deque<Batch> old;
    while (failed && !batches.empty() &&
           (failed->code() != Code::kExhausted || batches.front().round <= failed_round)) {
      old.push_back(std::move(batches.front()));
      batches.pop_front();
    }
    if (!old.empty()) settle(std::move(old), *failed);
    if (batches.empty()) continue;
    const Status status = write_all(batches);
    if (!status.ok()) {
      failed = status.error();
      failed_round = batches.front().round;
    }
    settle(std::move(batches), status);
  }
}

std::deque<Batch> SqliteStore::take_waiting() {
  std::deque<Batch> batches;
  MutexLock lock(mutex_);
  while (waiting_.empty() && !stopping_) arrived_.wait(mutex_);
  std::swap(batches, waiting_);
  return batches;
}

void SqliteStore::settle(std::deque<Batch> batches, const Status& status) {
  std::size_t bytes = 0;
  for (const Batch& batch : batches) bytes += batch.bytes;
  {
    MutexLock lock(mutex_);
    queued_bytes_ -= bytes;
    if (!status.ok()) {
      std::optional<Error>& kept = status.error().code() == Code::kExhausted ? full_ : broken_;
      // Those of a round that is over: the owner has resumed since, and knows.
      if (!kept && batches.front().round == round_) kept = status.error();
    }
  }
  if (!status.ok() && refused_) refused_->add(batches.size());
  answer(std::move(batches), status);
}

Status SqliteStore::write_all(const std::deque<Batch>& batches) {
  MutexLock lock(database_mutex_);
  errno = 0;  // so that what is found there after a failure is of it
  Status status = database_->run("BEGIN IMMEDIATE");
  for (const Batch& batch : batches) {
    if (status.ok() && batch.bytes > 0) status = database_->apply(batch.writes, batch.version);
  }
  std::uint64_t latest = 0;
  for (const Batch& batch : batches) {
    if (batch.bytes > 0) latest = batch.version;
  }
  if (status.ok() && latest > 0) status = database_->set_version(latest);
  BERTH_CRASH_POINT("store-before-commit");
  if (status.ok()) status = database_->run("COMMIT");
  if (!status.ok()) {
    // Whatever the disk holds of it, it was not acknowledged.
    [[maybe_unused]] Status undone = database_->run("ROLLBACK");
    return status;
  }
  BERTH_CRASH_POINT("store-after-commit");
  if (commits_) {
    commits_->add();
    batches_->add(batches.size());
  }
  return status;
}

void SqliteStore::answer(std::deque<Batch> batches, const Status& status) {
  // One post for all; and the writes are freed here and not on the loop.
  std::vector<std::function<void(Status)>> dones;
  dones.reserve(batches.size());
  for (Batch& batch : batches) dones.push_back(std::move(batch.done));
  loop_.post([alive = alive_, dones = std::move(dones), status] {
    for (const auto& done : dones) {
      if (!*alive) return;
      if (done) done(status);
    }
  });
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite(const SqliteOptions& options, Loop& loop,
                                           MetricsRegistry* metrics) {
  if (options.path.empty() || options.path.find('\0') != std::string::npos) {
    return invalid("the store's path is empty or holds a NUL");
  }
  BERTH_TRY(std::unique_ptr<Database> database, Database::open(options));
  BERTH_TRY(std::int64_t latest, database->number("SELECT version FROM latest"));
  return std::unique_ptr<Store>(std::make_unique<SqliteStore>(
      std::move(database), options, loop, static_cast<std::uint64_t>(latest), metrics));
}

}  // namespace berth::store
