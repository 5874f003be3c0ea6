// Who manages the queues: we do, unless Kueue itself runs; and what Kueue's configuration and the
// namespaces say about queues, for the webhook.
//
// On the loop's thread.
#pragma once

#include <memory>
#include <string>

#include "control/kueue_lease.h"
#include "control/part.h"
#include "control/queue_board.h"

namespace berth::control {

class KueuePresence final : public Part {
 public:
  // board: null where nobody reads it.
  KueuePresence(const Common& common, bool manage_queues, std::shared_ptr<QueueBoard> board)
      : common_(common), manage_queues_(manage_queues), board_(std::move(board)) {}

  bool changed(const Change& change) override;
  // Standbys answer the webhook, too: also while we do not lead.
  void tell_webhook();
  // Whether the queues would be ours if there were some, and whether they are.
  bool leaves_queues_to_us() const { return manage_queues_ && !lease_.live(common_.now()); }
  bool queues_are_ours() const {
    return common_.world.objects().has_queues() && leaves_queues_to_us();
  }
  // Why they are not, where Kueue is the reason; told to the log once.
  std::string trouble();

 private:
  void configuration_changed(const Change& change);

  const Common& common_;
  const bool manage_queues_;
  std::shared_ptr<QueueBoard> board_;
  KueueLease lease_;
  bool board_due_ = true, board_ours_ = false, said_ = false;
};

}  // namespace berth::control
