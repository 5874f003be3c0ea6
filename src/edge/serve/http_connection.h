// One connection of the HTTP server: bytes in, requests out, answers back in their order.
// For edge/serve/ alone; everything on the server's thread.
//
// The server calls on_ready() when the kernel says so, apply() with what handlers answered, and
// flush() once for all of it. A connection that is over says so by closed(); the server drops it.
//
// Bounds: requests in work at once and bytes of answers that wait pause reading; heads and bodies
// by the parser; streams by EventQueue; time by tick(). What it holds is counted in the budgets of
// the server, which chooses who gives way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "edge/serve/byte_budget.h"
#include "edge/serve/http_exchange.h"
#include "edge/serve/http_format.h"
#include "edge/serve/http_parse.h"
#include "edge/serve/socket.h"

namespace berth::serve {

// Why a connection ended that its peer would have kept.
enum class Cut : std::uint8_t {
  kSilent,       // no request came in time
  kSlowRequest,  // it took too long to arrive
  kSlowReader,
  kCrowded,  // it idled, and another one came
  kMemory,   // of all requests or answers
};
inline constexpr std::size_t kCuts = 5;

// What connections share, kept by the server.
struct ConnectionHost {
  HttpServerOptions options;
  Handler handler;
  std::shared_ptr<EventQueue> queue;
  std::vector<char> scratch = std::vector<char>(64 * 1024);  // for reading and for TLS records
  std::string date;                                          // of now, for answers
  std::int64_t now_ns = 0;                                   // monotonic, of this turn
  bool draining = false;
  std::shared_ptr<ByteBudget> requests, answers;
  std::function<void(int status)> answered = [](int) {};  // for metrics
  std::function<void(Cut why)> cut = [](Cut) {};          // for metrics
  // A budget is over: somebody gives way, maybe the one who asks.
  std::function<void()> make_request_room = [] {}, make_answer_room = [] {};
};

class HttpConnection {
 public:
  // Who gives way first to another connection; those at work never do.
  enum class Standing : std::uint8_t { kIdle, kUnfinished, kUnread, kAtWork };

  HttpConnection(ConnectionHost& host, std::uint64_t id, int fd, TlsContext context,
                 std::string peer);
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

  std::uint64_t id() const { return id_; }
  int fd() const { return socket_.fd(); }
  bool closed() const { return state_ == State::kClosed; }
  bool in_work() const { return state_ == State::kOpen && (!slots_.empty() || unsent_ > 0); }

  const std::string& peer() const { return peer_; }
  Standing standing() const;
  std::int64_t since_ns() const { return since_ns_; }                  // of the standing
  std::size_t request_bytes() const { return request_held_.bytes(); }  // of one that is unfinished
  std::size_t answer_bytes() const { return answer_held_.bytes(); }
  void give_up_request();  // 503, and the end
  void cut(Cut why);       // at once

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
  void count_request();
  bool inside() const { return !parser_.idle() || !left_.empty(); }  // of a request
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
  void grew(std::size_t own_bytes);
  void append_own(std::string bytes);
  void append_shared(std::shared_ptr<const std::string> bytes);
  Io send_some(std::size_t& sent);
  void sent(std::size_t bytes);
  bool too_slow(std::int64_t waited_ns) const;
  void lose_slots();
  void linger();
  void close();

  ConnectionHost& host_;
  const std::uint64_t id_;
  const std::string peer_;
  Socket socket_;
  State state_ = State::kHandshake;
  HttpParser parser_;
  std::string left_;  // bytes that wait for more, or for room
  std::vector<Slot> slots_;
  std::uint64_t next_sequence_ = 0;
  std::vector<Piece> out_;
  std::size_t out_first_ = 0, unsent_ = 0;
  std::size_t own_ = 0;  // bytes of pieces that nobody shares
  HeldBytes request_held_, answer_held_;
  std::string spare_;  // storage of the last small answer, for the next one
  bool readable_ = false, writable_ = true;
  bool held_ = false;        // left_ may hold whole requests
  bool last_ = false;        // no further request is read
  bool asked_ = false;       // a whole request has come
  std::size_t arrived_ = 0;  // bytes of the unfinished request
  std::int64_t since_ns_;    // of the state, the request or the last progress: what tick() judges
};

}  // namespace berth::serve
