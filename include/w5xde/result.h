// How every fallible function of WIIIIIDE answers: a value, or an Error whose kind says what the caller
// should do.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace w5xde {

// Named by what to do about it, not by where it happened. docs/errors.md explains each.
enum class ErrorKind {
  invalid,       // The request makes no sense: change it.
  corrupt,       // Bytes are not what they claim to be: drop their source.
  incompatible,  // The other side is sound but speaks something else: update one of the two.
  disconnected,  // The link is gone: connect again.
  overloaded,    // A limit is reached: slow down, or raise the limit.
  system,        // The machine refused (disk full, no permission): mend the machine.
  diverged,      // Training leads nowhere: go on from before, with a lower learning rate.
  unavailable,   // The other side is away and means to be back: come again later.
};

std::string_view name_of(ErrorKind kind);

struct Error {
  ErrorKind kind;
  std::string message;

  // "corrupt: frame header checksum is 0x1, expected 0x2"
  std::string to_string() const { return std::string(name_of(kind)) + ": " + message; }

  // The same error, told from further out: "reading run.toml: no such file".
  Error within(std::string_view what) && {
    message.insert(0, std::string(what) + ": ");
    return std::move(*this);
  }
};

inline std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid:
      return "invalid";
    case ErrorKind::corrupt:
      return "corrupt";
    case ErrorKind::incompatible:
      return "incompatible";
    case ErrorKind::disconnected:
      return "disconnected";
    case ErrorKind::overloaded:
      return "overloaded";
    case ErrorKind::system:
      return "system";
    case ErrorKind::diverged:
      return "diverged";
    case ErrorKind::unavailable:
      return "unavailable";
  }
  return "unknown";
}

inline Error invalid(std::string message) {
  return {ErrorKind::invalid, std::move(message)};
}
inline Error corrupt(std::string message) {
  return {ErrorKind::corrupt, std::move(message)};
}
inline Error incompatible(std::string message) {
  return {ErrorKind::incompatible, std::move(message)};
}
inline Error disconnected(std::string message) {
  return {ErrorKind::disconnected, std::move(message)};
}
inline Error overloaded(std::string message) {
  return {ErrorKind::overloaded, std::move(message)};
}
inline Error diverged(std::string message) {
  return {ErrorKind::diverged, std::move(message)};
}
inline Error unavailable(std::string message) {
  return {ErrorKind::unavailable, std::move(message)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return *checked(); }
  const T& value() const& { return *const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(*checked()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return checked(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  T* checked() {
    assert(ok() && "Result::value() of an error");
    return std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

// Success without a value, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }

  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace w5xde

#define W5XDE_JOIN_INNER(a, b) a##b
#define W5XDE_JOIN(a, b) W5XDE_JOIN_INNER(a, b)

// W5XDE_TRY(auto header, decode_header(bytes));  returns the error from the enclosing function, or declares
// header.
#define W5XDE_TRY(declaration, expression) \
  W5XDE_TRY_NAMED(W5XDE_JOIN(w5xde_try_, __LINE__), declaration, expression)
#define W5XDE_TRY_NAMED(attempt, declaration, expression) \
  auto attempt = (expression);                            \
  if (!attempt.ok()) return std::move(attempt).error();   \
  declaration = std::move(attempt).value()

// W5XDE_CHECK(write_all(file, bytes));  returns the error of a Status from the enclosing function.
#define W5XDE_CHECK(expression)                                                                       \
  do {                                                                                                \
    if (auto w5xde_status = (expression); !w5xde_status.ok()) return std::move(w5xde_status).error(); \
  } while (false)
