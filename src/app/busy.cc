#include "app/busy.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <ostream>
#include <thread>

#include "text/escape.h"

namespace berth::app {

struct Busy::State {
  State(std::string what, std::ostream& to) : doing(std::move(what)), out(to) {
    thread = std::thread([this] { run(); });
  }

  ~State() {
    {
      const std::lock_guard lock(mutex);
      over = true;
    }
    ended.notify_all();
    thread.join();
    if (shown) out << "\r\x1b[K" << std::flush;
  }

  void run() {
    std::unique_lock lock(mutex);
    for (int seconds = 1; !ended.wait_for(lock, std::chrono::seconds(1), [this] { return over; });
         ++seconds) {
      out << '\r' << text::elide_middle(text::terminal_safe(doing), 60) << ", " << seconds
          << " s\x1b[K" << std::flush;
      shown = true;
    }
  }

  std::string doing;
  std::ostream& out;
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false, shown = false;
  std::thread thread;
};

Busy::Busy(std::string doing, Terminal& terminal)
    : state_(terminal.err_is_terminal ? std::make_unique<State>(std::move(doing), terminal.err)
                                      : nullptr) {}

Busy::~Busy() = default;

}  // namespace berth::app
