// One connection of the HTTP server: bytes in, requests out, answers back in their order.
// For serve/ alone; everything on the server's thread.
//
// The server calls on_ready() when the kernel says so, apply() with what handlers answered, and
// flush() once for all of it. A connection that is over says so by closed(); the server drops it.
//
// Bounds: requests in work at once (kMaxInWork) and bytes of answers that wait (kMaxUnsent) pause
// reading; heads and bodies by the parser; streams by EventQueue; time by tick().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "serve/http_exchange.h"
#include "serve/http_format.h"
#include "serve/http_parse.h"
#include "serve/socket.h"

namespace berth::serve {

// What connections share, kept by the server.
struct ConnectionHost {
  HttpServerOptions options;
  Handler handler;
  std::shared_ptr<EventQueue> queue;
  std::vector<char> scratch = std::vector<char>(64 * 1024);  // for reading and for TLS records
  std::string date;                                          // of now, for answers
  std::int64_t now_ns = 0;                                   // monotonic, of this turn
  bool draining = false;
  std::function<void(int status)> answered = [](int) {};  // for metrics
  std::function<void()> cut_off = [] {};                  // a slow reader was
};

class HttpConnection {
 public:
  static constexpr std::size_t kMaxInWork = 64;
  static constexpr std::size_t kMaxUnsent = 4 * 1024 * 1024;

  HttpConnection(ConnectionHost& host, std::uint64_t id, int fd, TlsContext context);
  ~HttpConnection();  // exchanges without an answer are told that the peer went

  void on_ready(bool readable, bool writable, bool failed);
  void apply(ServerEvent& event);
  void flush();
  void tick();   // closes what takes too long
  void drain();  // ends streams, and the connection as soon as nothing is in work
  // There is more to read and no word will come from the kernel: call on_ready() again.
  bool wants_turn() const {
    return (state_ == State::kOpen || state_ == State::kLingering) && readable_ && !paused();
  }

  int fd() const { return socket_.fd(); }
  bool closed() const { return state_ == State::kClosed; }
  bool in_work() const { return state_ == State::kOpen && (!slots_.empty() || unsent_ > 0); }

 private:
  enum class State : std::uint8_t { kHandshake, kOpen, kLingering, kClosed };
  enum class Phase : std::uint8_t { kWaiting, kStream, kDone };

  struct Slot {  // a request in work; the first one's answer goes out, the others' wait
    std::uint64_t sequence = 0;
    std::weak_ptr<HttpExchange> exchange;
    bool head_only = false, keep_alive = true, http10 = false;
    Phase phase = Phase::kWaiting;
    std::vector<ServerEvent> pending = {};
  };
  struct Piece {  // bytes to send: our own or shared
    std::string own;
    std::shared_ptr<const std::string> shared;
    std::size_t sent = 0;
    std::string_view rest() const { return std::string_view(shared ? *shared : own).substr(sent); }
  };

  bool paused() const;
  void read();
  void take_bytes(std::string_view bytes);
  std::size_t parse(std::string_view bytes);
  void hand_out(ParsedRequest parsed);
  void refuse(int status, std::string_view problem);
  void emit(Slot& slot, ServerEvent& event);
  void send_response(Slot& slot, text::HttpResponse response);
  void send_begin(Slot& slot, text::HttpResponse head);
  void send_chunk(const Slot& slot, std::shared_ptr<const std::string> bytes);
  void send_end(Slot& slot);
  void next_slots();
  std::string& tail();  // where small bytes are appended
  void append(std::string_view bytes);
  void append_own(std::string bytes);
  void append_shared(std::shared_ptr<const std::string> bytes);
  Io send_some(std::size_t& sent);
  void sent(std::size_t bytes);
  void lose_slots();
  void linger();
  void close();

  ConnectionHost& host_;
  const std::uint64_t id_;
  Socket socket_;
  State state_ = State::kHandshake;
  HttpParser parser_;
  std::string left_;  // bytes that wait for more, or for room
  std::vector<Slot> slots_;
  std::uint64_t next_sequence_ = 0;
  std::vector<Piece> out_;
  std::size_t out_first_ = 0, unsent_ = 0;
  std::string spare_;  // storage of the last small answer, for the next one
  bool readable_ = false, writable_ = true;
  bool held_ = false;      // left_ may hold whole requests
  bool last_ = false;      // no further request is read
  std::int64_t since_ns_;  // of the state, the request or the last progress: what tick() judges
};

}  // namespace berth::serve
