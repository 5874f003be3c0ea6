#include "agent/requests.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "edge/host/host.h"
#include "edge/host/paths.h"
#include "text/decode.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace berth::agent {

namespace {

constexpr std::size_t kMaxRequest = 4096, kMaxWord = 256, kMaxId = 64;
constexpr int kAtATime = 16;  // the rest at the next look
constexpr std::int64_t kNextLook = 1'000'000'000;
constexpr std::string_view kAsk = ".ask", kAnswer = ".answer";

constexpr text::Field<Request> kRequestFields[] = {
    text::required(text::field<&Request::verb>("verb")),
    text::required(text::field<&Request::gpu>("gpu")),
    text::field<&Request::by>("by"),
    text::field<&Request::why>("why"),
};

struct Reply {
  bool ok = false;
  std::string text;
};

constexpr text::Field<Reply> kReplyFields[] = {
    text::required(text::field<&Reply::ok>("ok")),
    text::required(text::field<&Reply::text>("text")),
};

// Ours only: other names in the folder are nobody's business.
bool is_request(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return false;
  name.remove_suffix(ending.size());
  return !name.empty() && name.size() <= kMaxId &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

template <class T, std::size_t N>
Status read_fields(std::string_view text, const text::Field<T> (&fields)[N], T& out) {
  BERTH_TRY(const text::Document document,
            text::parse_json(text, {.limits = {.max_depth = 2, .max_nodes = 64}}));
  text::Decoder d({.max_issues = 4});
  decode_object(document.root(), fields, out, d);
  if (!d.ok()) return d.to_error();
  if (d.warnings() != 0) return invalid(d.issues().front().message());
  return {};
}

std::string write_reply(const Result<std::string>& made) {
  text::JsonWriter out;
  out.object([&] {
    out.field("ok", made.ok());
    out.field("text", made.ok() ? *made : made.error().to_string());
  });
  return std::move(out).take();
}

class Desk final : public RequestInbox {
 public:
  Desk(Loop& loop, std::string folder, Serve serve, const Logger& log)
      : loop_(loop), folder_(std::move(folder)), serve_(std::move(serve)), log_(log) {
    for (const std::string& name : host::names_in(folder_)) {
      if (is_request(name, kAsk) || is_request(name, kAnswer)) {
        host::remove_file(folder_ + '/' + name);
      }
    }
    watch_ = host::FolderWatch::start(loop_, folder_, [this](const std::string&) { look(); });
  }
  ~Desk() override { loop_.cancel(later_); }

 private:
  void look() {
    int served = 0;
    for (const std::string& name : host::names_in(folder_)) {
      if (!is_request(name, kAsk)) continue;
      if (++served > kAtATime) {
        loop_.cancel(later_);
        later_ = loop_.after(kNextLook, [this] { look(); });
        return;
      }
      take(name);
    }
  }

  void take(const std::string& name) {
    const std::string path = folder_ + '/' + name;
    const Result<std::string> text = host::read_text(path, kMaxRequest);
    // Who removes it serves it.
    if (::unlink(path.c_str()) != 0) return;
    const std::string id = name.substr(0, name.size() - kAsk.size());
    const Result<std::string> made = served(text);
    const Status wrote =
        host::write_atomically(folder_ + '/' + id + std::string(kAnswer), write_reply(made), 0600);
    if (!wrote.ok()) {
      log_.warn("an answer could not be written", {{"error", wrote.error().to_string()}});
    }
  }

  Result<std::string> served(const Result<std::string>& text) {
    if (!text.ok()) return text.error();
    BERTH_TRY(const Request request, read_request(*text));
    return serve_(request);
  }

  Loop& loop_;
  const std::string folder_;
  const Serve serve_;
  const Logger& log_;
  Loop::Timer later_ = 0;
  std::unique_ptr<host::FolderWatch> watch_;
};

class Asker final : public Asking {
 public:
  Asker(Loop& loop, const std::string& folder, const std::string& id, Done done)
      : loop_(loop), ask_(folder + '/' + id), answer_(ask_), done_(std::move(done)) {
    ask_ += kAsk;
    answer_ += kAnswer;
  }
  ~Asker() override {
    loop_.cancel(patience_);
    host::remove_file(ask_);
    host::remove_file(answer_);
  }

  void start(const std::string& folder, const Request& request, std::int64_t patience_ns) {
    Status sent = host::is_folder(folder)
                      ? Status()
                      : Status(Error(Code::kNotFound, "there is no folder " + folder));
    if (sent.ok()) {
      watch_ = host::FolderWatch::start(loop_, folder, [this](const std::string&) { look(); });
      sent = host::write_atomically(ask_, write_request(request), 0600);
    }
    if (!sent.ok()) {
      patience_ = loop_.after(0, [this, error = sent.error()] { end(error); });
      return;
    }
    patience_ = loop_.after(patience_ns, [this] {
      look();
      end(Error(Code::kUnavailable, "no agent took the request in time"));
    });
  }

 private:
  void look() {
    const Result<std::string> text = host::read_text(answer_, kMaxRequest);
    if (!text.ok()) return;
    Reply reply;
    const Status read = read_fields(*text, kReplyFields, reply);
    if (!read.ok()) return end(read.error());
    if (!reply.ok) return end(Error(Code::kInvalid, reply.text));
    end(std::move(reply.text));
  }

  void end(Result<std::string> outcome) {
    if (!done_) return;
    loop_.cancel(patience_);
    const Done done = std::exchange(done_, nullptr);
    done(std::move(outcome));
  }

  Loop& loop_;
  std::string ask_, answer_;
  Done done_;
  Loop::Timer patience_ = 0;
  std::unique_ptr<host::FolderWatch> watch_;
};

}  // namespace

std::string requests_folder(const std::string& state_dir) { return state_dir + "/requests"; }

std::string write_request(const Request& request) {
  text::JsonWriter out;
  out.object([&] {
    out.field("verb", request.verb);
    out.field("gpu", request.gpu);
    out.field("by", request.by);
    out.field("why", request.why);
  });
  return std::move(out).take();
}

Result<Request> read_request(std::string_view text) {
  Request out;
  BERTH_CHECK(read_fields(text, kRequestFields, out));
  if (out.verb != kForgive) {
    return invalid("verb: found \"" + out.verb.substr(0, kMaxWord) + "\", want forgive");
  }
  for (const auto& [name, word] :
       {std::pair{"gpu", &out.gpu}, std::pair{"by", &out.by}, std::pair{"why", &out.why}}) {
    if (word->size() > kMaxWord) {
      return invalid(std::string(name) + ": found " + std::to_string(word->size()) +
                     " bytes, want at most " + std::to_string(kMaxWord));
    }
  }
  return out;
}

Result<std::unique_ptr<RequestInbox>> RequestInbox::open(Loop& loop, const std::string& folder,
                                                         Serve serve, const Logger& log) {
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && !host::is_folder(folder)) {
    return Error(Code::kUnavailable, folder + ": cannot be made");
  }
  // One that was there before may be anybody's.
  struct stat found{};
  if (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) ||
      found.st_uid != ::geteuid() || ::chmod(folder.c_str(), S_IRWXU) != 0) {
    return Error(Code::kUnavailable, folder + ": not a folder of this user's own");
  }
  return std::unique_ptr<RequestInbox>(std::make_unique<Desk>(loop, folder, std::move(serve), log));
}

std::unique_ptr<Asking> Asking::start(Loop& loop, const std::string& folder, const std::string& id,
                                      const Request& request, std::int64_t patience_ns, Done done) {
  auto out = std::make_unique<Asker>(loop, folder, id, std::move(done));
  out->start(folder, request, patience_ns);
  return out;
}

}  // namespace berth::agent
