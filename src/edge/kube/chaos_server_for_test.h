// An API server of one collection, in virtual time, that does what a server under stress does:
// answers late, breaks connections, cuts streams in the middle of a line, falls silent, forgets its
// history, refuses and throttles. Everything is drawn from a seed. calm() ends it.
//
// What it says is true: lists and watches follow the rules of resourceVersion, so that a client
// which follows them too must end with the truth.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/random.h"
#include "edge/kube/transport.h"

namespace berth::kube {

class ChaosServer final : public Transport {
 public:
  struct Item {
    std::string uid;
    int version = 0;
    friend bool operator==(const Item&, const Item&) = default;
  };
  using Items = std::map<std::string, Item>;

  ChaosServer(SteppedLoop& loop, Random random)
      : loop_(loop), random_(random), watch_list_(random_.chance(2, 3)) {}

  // ---- the truth ----
  Items items;
  int version = 1;

  std::string write(const std::string& name) {
    const bool fresh = !items.contains(name);
    Item& item = items[name];
    item.version = ++version;
    if (fresh) item.uid = "u" + std::to_string(version);
    changes_.push_back({fresh ? "ADDED" : "MODIFIED", name, item});
    return json_of(name, item);
  }
  std::string erase(const std::string& name) {  // its uid
    Item item = items[name];
    items.erase(name);
    item.version = ++version;
    changes_.push_back({"DELETED", name, item});
    return item.uid;
  }
  void compact() { floor_ = version; }  // a watch from before is gone
  // So many of a hundred lines of first events, and of later pages, end the list.
  void cut_lists(std::uint64_t percent) { cut_percent_ = percent; }
  void calm() {
    wild_ = false;
    std::vector<std::shared_ptr<Stream>> open;
    for (auto& [id, stream] : streams_) open.push_back(stream);
    for (auto& stream : open) finish(stream, nullptr);
  }
  int requests() const { return static_cast<int>(last_); }

  // ---- the wire ----
  Call send(text::HttpRequest request, const SendOptions&, Answered answered) override {
    Call id = ++last_;
    waiting_.insert(id);
    loop_.after(wild_ ? random_.between(0, 400) * kMs : kMs,
                [this, id, request = std::move(request), answered = std::move(answered)] {
                  if (waiting_.erase(id) > 0) answer(request, answered);
                });
    return id;
  }
  Call stream(text::HttpRequest request, const StreamOptions& options,
              StreamHandler handler) override {
    Call id = ++last_;
    auto stream = std::make_shared<Stream>();
    stream->id = id;
    stream->handler = std::move(handler);
    stream->idle_ns = options.idle_ns;
    streams_[id] = stream;
    loop_.after(wild_ ? random_.between(0, 400) * kMs : kMs,
                [this, stream, request = std::move(request)] {
                  if (streams_.contains(stream->id)) open(stream, request);
                });
    return id;
  }
  void resume(Call) override {}
  void cancel(Call call) override {
    waiting_.erase(call);
    streams_.erase(call);
  }

 private:
  static constexpr std::int64_t kMs = 1'000'000;
  struct Change {
    std::string type, name;
    Item item;
  };
  struct Stream {
    Call id = 0;
    StreamHandler handler;
    std::int64_t idle_ns = 0;
    int told = 0;
    bool silent = false;
  };
  using StreamPtr = std::shared_ptr<Stream>;

  static std::string json_of(const std::string& name, const Item& item) {
    return R"({"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"d","name":")" + name +
           R"(","uid":")" + item.uid + R"(","resourceVersion":")" + std::to_string(item.version) +
           R"("}})";
  }
  static std::string status(int code, const char* reason, const char* cause = "") {
    return R"({"kind":"Status","code":)" + std::to_string(code) + R"(,"reason":")" + reason +
           R"(","details":{"causes":[{"reason":")" + cause + R"("}]}})";
  }
  static std::string bookmark(int at, bool end) {
    return R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":")" + std::to_string(at) +
           R"(","annotations":{"k8s.io/initial-events-end":")" + (end ? "true" : "no") + "\"}}}}\n";
  }
  bool luck(std::uint64_t percent) { return wild_ && random_.chance(percent, 100); }

  Items at(int then) const {
    Items out;
    for (const Change& change : changes_) {
      if (change.item.version > then) break;
      if (change.type == "DELETED") {
        out.erase(change.name);
      } else {
        out[change.name] = change.item;
      }
    }
    return out;
  }
  // Some version that a cache may show which is not older than `least`.
  int some_version(int least) {
    return wild_ ? static_cast<int>(random_.between(std::max(least, version - 4), version))
                 : version;
  }

  void answer(const text::HttpRequest& request, const Answered& answered) {
    if (luck(8)) {
      TransportError error{"broken", random_.chance(1, 2), false};
      return answered({}, &error);
    }
    if (luck(5)) return answered({500, {}, status(500, "InternalError")}, nullptr);
    if (luck(5)) return answered({429, {}, status(429, "TooManyRequests")}, nullptr);
    auto target = text::parse_http_target(request.target);
    std::string from(target->get("resourceVersion").value_or(""));
    std::string next(target->get("continue").value_or(""));
    int shown = version;
    std::size_t offset = 0;
    if (!next.empty()) {
      if (luck(cut_percent_ / 2)) return answered({500, {}, status(500, "Internal")}, nullptr);
      if (luck(std::max<std::uint64_t>(20, cut_percent_ / 2))) {
        return answered({410, {}, status(410, "Expired")}, nullptr);
      }
      shown = std::stoi(next);
      offset = std::stoul(next.substr(next.find(':') + 1));
    } else if (!from.empty()) {
      if (from != "0" && luck(15)) return answered({410, {}, status(410, "Expired")}, nullptr);
      if (from != "0" && luck(15)) {
        return answered({504, {}, status(504, "Timeout", "ResourceVersionTooLarge")}, nullptr);
      }
      shown = some_version(from == "0" ? 1 : std::stoi(from));
    }
    answered({200, {}, list(shown, offset, target->get("limit").has_value())}, nullptr);
  }
  std::string list(int shown, std::size_t offset, bool paged) {
    constexpr std::size_t kPage = 3;
    std::string out, more;
    std::size_t index = 0;
    for (const auto& [name, item] : at(shown)) {
      if (index >= offset && (!paged || index < offset + kPage)) {
        out += (out.empty() ? "" : ",") + json_of(name, item);
      }
      if (paged && index == offset + kPage) {
        more = std::to_string(shown) + ":" + std::to_string(index);
      }
      ++index;
    }
    return R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":")" +
           std::to_string(shown) + R"(","continue":")" + more + R"("},"items":[)" + out + "]}";
  }

  void finish(const StreamPtr& stream, const TransportError* error) {
    if (streams_.erase(stream->id) > 0) stream->handler.on_end(error);
  }
  bool head(const StreamPtr& stream, int code) {
    stream->handler.on_head({code, {}, {}});
    return streams_.contains(stream->id);
  }
  bool say(const StreamPtr& stream, const std::string& text) {
    std::size_t cut = wild_ ? random_.below(text.size() + 1) : text.size();
    for (std::string part : {text.substr(0, cut), text.substr(cut)}) {
      if (!part.empty() && streams_.contains(stream->id)) stream->handler.on_data(part);
    }
    return streams_.contains(stream->id);
  }
  void refuse(const StreamPtr& stream, int code, const std::string& body) {
    if (head(stream, code) && say(stream, body)) finish(stream, nullptr);
  }
  void open(const StreamPtr& stream, const text::HttpRequest& request) {
    TransportError broken{"broken", random_.chance(1, 2), false};
    if (luck(8)) return finish(stream, &broken);
    if (luck(5)) return refuse(stream, 429, status(429, "TooManyRequests"));
    if (luck(5)) return refuse(stream, 503, "no such luck");
    auto target = text::parse_http_target(request.target);
    const bool initial = target->get("sendInitialEvents").has_value();
    const int from = std::stoi("0" + std::string(target->get("resourceVersion").value_or("")));
    if (initial && !watch_list_) return refuse(stream, 422, status(422, "Invalid"));
    if (from != 0 && (from < floor_ || luck(5))) {
      if (random_.chance(1, 2)) return refuse(stream, 410, status(410, "Expired"));
      if (head(stream, 200) && say(stream, error_line(410, "Expired"))) finish(stream, nullptr);
      return;
    }
    if (!head(stream, 200)) return;
    stream->told = from;
    if (initial) {
      stream->told = from == 0 ? version : some_version(from);  // "" asks for the newest
      std::vector<std::string> lines;
      for (const auto& [name, item] : at(stream->told)) lines.push_back(line("ADDED", name, item));
      random_.shuffle(lines);
      for (const std::string& text : lines) {
        if (!say(stream, text)) return;
        if (luck(std::max<std::uint64_t>(2, cut_percent_))) return finish(stream, &broken);
      }
      if (!say(stream, bookmark(stream->told, true))) return;
    }
    const std::int64_t timeout = std::stoi(std::string(*target->get("timeoutSeconds")));
    loop_.after(timeout * 1'000 * kMs, [this, stream] {
      if (!stream->silent) finish(stream, nullptr);
    });
    pump_later(stream);
  }
  static std::string line(const std::string& type, const std::string& name, const Item& item) {
    return R"({"type":")" + type + R"(","object":)" + json_of(name, item) + "}\n";
  }
  static std::string error_line(int code, const char* reason) {
    return R"({"type":"ERROR","object":)" + status(code, reason) + "}\n";
  }
  void pump_later(const StreamPtr& stream) {
    loop_.after(wild_ ? random_.between(1, 900) * kMs : 2'000 * kMs, [this, stream] {
      if (streams_.contains(stream->id) && !stream->silent) pump(stream);
    });
  }
  void pump(const StreamPtr& stream) {
    TransportError broken{"cut", false, true};
    // changes_[i] has version i + 2.
    for (std::size_t i = static_cast<std::size_t>(std::max(stream->told - 1, 0));
         i < changes_.size(); ++i) {
      const Change change = changes_[i];  // handlers may make more
      std::string text = line(change.type, change.name, change.item);
      if (luck(3)) {  // in the middle of a line
        if (say(stream, text.substr(0, text.size() / 2))) finish(stream, &broken);
        return;
      }
      stream->told = change.item.version;
      if (!say(stream, text)) return;
      if (luck(1)) return finish(stream, nullptr);
    }
    if (luck(10) && !say(stream, bookmark(std::max(stream->told, 1), false))) return;
    if (luck(2)) return void(say(stream, error_line(410, "Expired")));
    if (luck(2)) return void(say(stream, error_line(429, "TooManyRequests")));
    if (luck(1)) return void(say(stream, "{\"type\":\"ADDED\"}\n"));
    if (luck(1)) {
      stream->silent = true;
      loop_.after(stream->idle_ns, [this, stream] {
        TransportError idle{"silent for too long", false, true};
        finish(stream, &idle);
      });
      return;
    }
    pump_later(stream);
  }

  SteppedLoop& loop_;
  Random random_;
  const bool watch_list_;
  bool wild_ = true;
  std::uint64_t cut_percent_ = 0;
  int floor_ = 0;
  std::vector<Change> changes_;
  Call last_ = 0;
  std::set<Call> waiting_;
  std::map<Call, StreamPtr> streams_;
};

}  // namespace berth::kube
