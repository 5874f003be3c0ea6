#include "edge/kube/http_fetch.h"

#include <curl/curl.h>

#include <algorithm>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace berth::kube {

// Of this file alone; not unnamed, because State has members of it.
struct Fetching {
  std::string url, body;
  HttpFetch::Done done;
  std::size_t max_bytes = 0;
  bool too_long = false;
};

namespace {

std::size_t take_page_bytes(char* data, std::size_t size, std::size_t count, void* to) {
  Fetching& transfer = *static_cast<Fetching*>(to);
  if (transfer.body.size() + size * count > transfer.max_bytes) {
    transfer.too_long = true;
    return 0;  // ends the transfer
  }
  transfer.body.append(data, size * count);
  return size * count;
}

Result<std::string> fetch_outcome(Fetching& transfer, CURLcode code, long status) {
  if (transfer.too_long) {
    return Error(Code::kExhausted, "the page is longer than " + std::to_string(transfer.max_bytes));
  }
  if (code != CURLE_OK) return Error(Code::kUnavailable, curl_easy_strerror(code));
  if (status != 200) return Error(Code::kUnavailable, "HTTP " + std::to_string(status));
  return std::move(transfer.body);
}

}  // namespace

struct HttpFetch::State : std::enable_shared_from_this<State> {
  State(Loop& on, HttpFetchOptions with) : loop(on), options(with) {
    curl_global_init(CURL_GLOBAL_ALL);
    multi = curl_multi_init();
  }
  ~State() {
    for (auto& [easy, transfer] : running) {
      curl_multi_remove_handle(multi, easy);
      curl_easy_cleanup(easy);
    }
    curl_multi_cleanup(multi);
  }

  Loop& loop;
  HttpFetchOptions options;
  CURLM* multi = nullptr;
  std::thread thread;

  Mutex mutex;
  std::deque<std::unique_ptr<Fetching>> waiting BERTH_GUARDED_BY(mutex);
  bool closed BERTH_GUARDED_BY(mutex) = false;

  std::map<CURL*, std::unique_ptr<Fetching>> running;  // of the thread

  void answer(Fetching& transfer, Result<std::string> result) {
    loop.post([self = weak_from_this(), done = std::move(transfer.done),
               said = std::make_shared<Result<std::string>>(std::move(result))] {
      if (self.lock()) done(std::move(*said));
    });
  }

  void begin(std::unique_ptr<Fetching> transfer) {
    CURL* easy = curl_easy_init();
    if (easy == nullptr) return answer(*transfer, Error(Code::kUnavailable, "no memory for curl"));
    curl_easy_setopt(easy, CURLOPT_URL, transfer->url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "berth");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                     static_cast<long>(std::max<std::int64_t>(options.timeout_ns / 1'000'000, 1)));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_page_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer.get());
    running.emplace(easy, std::move(transfer));
    curl_multi_add_handle(multi, easy);
  }

  // Starts what may start; false: the fetcher is gone.
  bool refill() {
    const MutexLock lock(mutex);
    while (!waiting.empty() && running.size() < options.max_at_once) {
      begin(std::move(waiting.front()));
      waiting.pop_front();
    }
    return !closed;
  }

  // True: some ended, so that others may start.
  bool finish() {
    bool ended = false;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const auto found = running.find(message->easy_handle);
      const CURLcode code = message->data.result;
      long status = 0;
      curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
      answer(*found->second, fetch_outcome(*found->second, code, status));
      curl_multi_remove_handle(multi, found->first);
      curl_easy_cleanup(found->first);
      running.erase(found);
      ended = true;
    }
    return ended;
  }

  void run() {
    constexpr int kLongestWaitMs = 1'000;
    while (refill()) {
      int active = 0;
      curl_multi_perform(multi, &active);
      if (!finish()) curl_multi_poll(multi, nullptr, 0, kLongestWaitMs, nullptr);
    }
  }
};

HttpFetch::HttpFetch(Loop& loop, HttpFetchOptions options)
    : state_(std::make_shared<State>(loop, options)) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

HttpFetch::~HttpFetch() {
  {
    const MutexLock lock(state_->mutex);
    state_->closed = true;
  }
  curl_multi_wakeup(state_->multi);
  state_->thread.join();
}

void HttpFetch::get(std::string url, Done done) {
  auto transfer = std::make_unique<Fetching>();
  transfer->url = std::move(url);
  transfer->done = std::move(done);
  transfer->max_bytes = state_->options.max_bytes;
  {
    const MutexLock lock(state_->mutex);
    state_->waiting.push_back(std::move(transfer));
  }
  curl_multi_wakeup(state_->multi);
}

}  // namespace berth::kube
