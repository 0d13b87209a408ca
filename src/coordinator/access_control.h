#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "net/loop.h"
#include "net/stream.h"
#include "record/guest_list.h"
#include "w5xde/result.h"
#include "wire/proof.h"

namespace w5xde {

// Decides who may come in to a coordinator with TLS: who proves an invitation of the run's guest list. Reads
// the list again when it has changed, and sends away whose invitation was revoked. Files are read and written
// beside the loop. Loop thread only.
class AccessControl {
 public:
  struct Options {
    std::filesystem::path guest_list;
    // The handshake lets in only who has a certificate of an authority, and that is enough for a node.
    bool authority_vouches = false;
    std::function<std::int64_t()> now;  // seconds since 1970
  };

  struct Request {
    Proof proof;
    std::string identity;  // Stream::peer_identity()
    SessionSecret session_secret{};
    bool is_node = false;  // or an observer
    std::string host;      // for others' messages
  };

  // A peer that has asked, and perhaps is in. Until this goes, one of the functions may be called.
  class Stay {
   public:
    Stay(AccessControl& access, std::uint64_t number) : access_(access), number_(number) {}
    ~Stay() { access_.members_.erase(number_); }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    AccessControl& access_;
    const std::uint64_t number_;
  };

  // Must outlive every Stay.
  AccessControl(Loop& loop, Options options, const Log& log);
  ~AccessControl();
  AccessControl(const AccessControl&) = delete;
  AccessControl& operator=(const AccessControl&) = delete;

  // `answered` is called once, from the loop: the role that the peer has, or why it must not come in.
  // `send_away` is called, perhaps, after that: it may not stay.
  std::unique_ptr<Stay> ask(Request request, std::function<void(Result<Role>)> answered,
                            std::function<void(Error)> send_away);

 private:
  class Book;
  struct Member {
    Request request;
    std::function<void(Result<Role>)> answered;
    std::function<void(Error)> send_away;
    bool is_in = false;
  };

  void decided(std::uint64_t number, Result<Role> decision);
  Status check_machine(std::uint64_t number, const Request& request) const;
  void arm_look();
  void look();

  Loop& loop_;
  std::map<std::uint64_t, Member> members_;
  std::uint64_t last_number_ = 0;
  Loop::TimerId look_timer_ = 0;
  std::shared_ptr<Book> book_;              // only what runs beside the loop touches it
  std::unique_ptr<Background> background_;  // last: it ends before what it works with
};

}  // namespace w5xde
