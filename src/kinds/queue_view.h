// What decisions of queues read of an ObjectSet, kept: the port to what resolves it
// (resolve/kept_queues.h). Private to this folder.
#pragma once

#include <memory>
#include <string>

#include "kinds/object_set_state.h"

namespace berth::kinds {

class ObjectSet::State::QueueView {
 public:
  QueueView() = default;
  virtual ~QueueView() = default;
  QueueView(const QueueView&) = delete;
  QueueView& operator=(const QueueView&) = delete;

  // An object changed, came or went. key: of its shelf, or "ns/name" of a pod.
  virtual void pod_changed(const std::string& key) = 0;
  virtual bool object_changed(const Shelf* shelf, const std::string& key) = 0;  // false: of no kin
  virtual void node_changed(const std::string& name) = 0;
  virtual void namespace_changed(const std::string& ns) = 0;  // or a LocalQueue in it
  virtual void volumes_changed() = 0;
  virtual void everything_changed() = 0;

  virtual QueueChanges refresh(const PlaceOf& believed) = 0;
  virtual Queues queues() const = 0;
  virtual const model::QueueRules& rules() const = 0;

  static std::unique_ptr<QueueView> make(const State& set);
};

}  // namespace berth::kinds
