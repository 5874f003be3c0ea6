#include "app/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace berth::app {

struct StopSignals::State {
  sigset_t signals{}, before{};
  std::function<void()> asked;
  std::atomic<bool> done{false};
  std::thread waiter;

  void wait() {
    bool first = true;
    while (true) {
      int signal = 0;
      if (sigwait(&signals, &signal) != 0 || done.load()) return;
      if (!first) ::_exit(130);
      first = false;
      asked();
    }
  }
};

StopSignals::StopSignals(std::function<void()> asked) : state_(std::make_unique<State>()) {
  state_->asked = std::move(asked);
  sigemptyset(&state_->signals);
  sigaddset(&state_->signals, SIGINT);
  sigaddset(&state_->signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &state_->signals, &state_->before);
  ::signal(SIGPIPE, SIG_IGN);
  state_->waiter = std::thread([state = state_.get()] { state->wait(); });
}

StopSignals::~StopSignals() {
  state_->done = true;
  pthread_kill(state_->waiter.native_handle(), SIGTERM);
  state_->waiter.join();
  pthread_sigmask(SIG_SETMASK, &state_->before, nullptr);
}

}  // namespace berth::app
