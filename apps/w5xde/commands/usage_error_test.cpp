#include "commands/usage_error.h"

#include <gtest/gtest.h>

#include "commands/command.h"
#include "commands/suggestion.h"

namespace w5xde {
namespace {

// What is said of a command line that nothing can be done with.
std::string said(const std::vector<std::string>& words) {
  ExitCode code = kSuccess;
  const auto program = make_program(code);
  try {
    program->parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 wants the last one first
  } catch (const CLI::ParseError& refusal) {
    const Error error = usage_error(*program, refusal, words);
    EXPECT_EQ(error.kind, ErrorKind::invalid);
    return error.message;
  }
  return "accepted";
}

TEST(UsageErrorTest, a_command_that_is_not_there_brings_up_what_may_have_been_meant) {
  EXPECT_EQ(said({"trian"}), "there is no command trian; did you mean train?");
  EXPECT_EQ(said({"runn"}), "there is no command runn; did you mean train?");
  EXPECT_EQ(said({"worker", "HOST:5555"}), "there is no command worker; did you mean join?");
  EXPECT_EQ(said({"frobnicate"}),
            "there is no command frobnicate; there is train, serve, join, invite, status, data, inspect, "
            "eval, sample, "
            "export, compare, plot, plan or completion");
  EXPECT_EQ(said({"completion", "bahs"}), "there is no command bahs; did you mean bash?");
}

TEST(UsageErrorTest, without_a_command_it_says_which_there_are) {
  EXPECT_EQ(said({}),
            "say a command: train, serve, join, invite, status, data, inspect, eval, sample, export, "
            "compare, plot, "
            "plan or completion; `w5xde --help` explains them");
  EXPECT_EQ(said({"completion"}),
            "completion needs a command: bash; `w5xde completion --help` explains them");
}

TEST(UsageErrorTest, an_unknown_flag_brings_up_what_may_have_been_meant_and_where_all_are) {
  EXPECT_EQ(said({"train", "--lerning-rate", "0.1"}),
            "there is no --lerning-rate; did you mean --learning-rate? `w5xde train --help-all` lists them");
  EXPECT_EQ(said({"train", "--batch-size=8"}),
            "there is no --batch-size; did you mean --batch? `w5xde train --help-all` lists them");
  EXPECT_EQ(said({"status", "runs/a", "--colour"}),
            "there is no --colour. `w5xde status --help-all` lists them");
}

TEST(UsageErrorTest, what_a_command_cannot_do_without_is_named_with_an_example) {
  EXPECT_EQ(said({"eval"}),
            "eval needs RUN (The run folder), as in:\n  w5xde eval runs/a --data idx:fashion-mnist");
  EXPECT_EQ(said({"join", "--cores", "2"}),
            "join needs INVITATION|HOST:PORT (What `w5xde serve` or `w5xde invite` has printed, or a file "
            "with it), as "
            "in:\n  w5xde join w5xde://HOST:5555/TEXT --cores 2");
  EXPECT_EQ(said({"export", "runs/a"}),
            "export needs FILE (What to write: FILE.safetensors or FILE.pt), as in:\n"
            "  w5xde export runs/a net.safetensors");
}

TEST(UsageErrorTest, a_word_too_many_is_named) {
  EXPECT_EQ(said({"train", "runs/a", "runs/b"}),
            "train: 'runs/b' is one word too many. As in:\n  w5xde train --model mlp:10,20,10 --data "
            "synthetic --nodes 10 --seconds 30");
  EXPECT_EQ(said({"train", "runs/a", "epochs", "3"}),
            "train: 'epochs' is one word too many; did you mean --epochs?");
}

TEST(UsageErrorTest, a_flag_with_a_value_that_is_none_says_what_it_takes) {
  EXPECT_EQ(said({"train", "--batch"}),
            "--batch needs a value: samples a slot; auto: measured, and slots with it");
  EXPECT_EQ(said({"train", "--nodes", "many"}), "--nodes: 'many': use a whole number, 0 or more");
  EXPECT_EQ(said({"plan", "--slot-seconds", "long"}), "--slot-seconds: 'long': use a number, as 0.5 or 1e-3");
  EXPECT_EQ(said({"train", "--insecure=perhaps"}),
            "--insecure: 'perhaps': it is a switch; leave the value out");
}

TEST(SuggestionTest, what_is_far_from_everything_is_not_guessed) {
  EXPECT_EQ(did_you_mean("epoch", {"epochs", "steps"}), "; did you mean epochs?");
  EXPECT_EQ(did_you_mean("colour", {"epochs", "steps"}), ".");
  EXPECT_EQ(did_you_mean("x", {}), ".");
  EXPECT_EQ(in_words({"a"}), "a");
  EXPECT_EQ(in_words({"a", "b", "c"}), "a, b or c");
}

}  // namespace
}  // namespace w5xde
