// From an HTTP answer to an Answer: status, reason, message, body, warnings. Pure.
//
// For client.cc and the transports' users inside edge/kube/. Whatever a server sends, the result
// can be shown to people: foreign text is cut and escaped.
#pragma once

#include "edge/kube/client.h"

namespace berth::kube {

// An answer with a good status whose JSON cannot be read has status 0 and says so; that a write was
// then carried out is certain, and maybe_carried_out is set.
Answer read_answer(const text::HttpResponse& response);
Answer read_failure(const TransportError& error);

// A Status object of the API: code, reason, message, details.retryAfterSeconds. Also for ERROR
// events of a watch. The body stays null.
Answer read_status(const text::Value& status);

// The server does not know a resourceVersion as high as the one that was asked for.
bool too_large_version(const text::Value& status);

// Retry-After in nanoseconds; 0 when it is not there or is a date.
std::int64_t retry_after_of(const text::HttpHeaders& headers);

}  // namespace berth::kube
