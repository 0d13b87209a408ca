#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "coordinator/access_control.h"
#include "record/guest_list.h"
#include "wire/enrolment.h"
#include "wire/hello.h"

namespace w5xde {

// How far a peer has come on its way to being of use, what it has said of itself, and how long it may stay
// where it is. Loop thread only.
class Admission {
 public:
  // silent → greeted (its hello is in) → admitted (it may be here) → offered (a node knows the run) → ready
  // (it can work). An observer stays admitted.
  enum class Stage { silent, greeted, admitted, offered, ready };
  Stage stage() const { return stage_; }
  bool is_node() const { return hello_.role == "node"; }
  const Hello& hello() const { return hello_; }
  const Ready& about() const { return about_; }

  void greet(Hello hello);
  // It has asked to be let in, and may be sent away as long as the stay lasts.
  void ask(std::unique_ptr<AccessControl::Stay> stay) { stay_ = std::move(stay); }
  bool has_asked() const { return stay_ != nullptr; }
  void let_in(Role role);
  bool may_observe() const { return stage_ >= Stage::admitted && role_ != Role::node; }
  void offer() { advance(Stage::offered); }
  void become_ready(Ready about);
  // An observer asked something.
  void asked() { idle_seconds_ = 0; }
  // True once: a node that knows the run asks for the model's file.
  bool take_model();

  // A second has passed, in which this process ran. True: the peer has been idle for too long.
  bool idle_too_long(std::uint64_t model_bytes);
  std::string reason() const;

 private:
  void advance(Stage stage);
  std::uint64_t seconds_allowed(std::uint64_t model_bytes) const;

  Stage stage_ = Stage::silent;
  Hello hello_;
  Ready about_;
  std::unique_ptr<AccessControl::Stay> stay_;  // null where everybody may come
  Role role_ = Role::node;                     // once it is admitted
  bool model_taken_ = false;
  std::uint64_t idle_seconds_ = 0;  // since the peer last came a step further
};

}  // namespace w5xde
