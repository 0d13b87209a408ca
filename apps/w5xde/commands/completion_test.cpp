#include "commands/completion.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/log.h"
#include "commands/command.h"
#include "local_pool/child.h"
#include "settings.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

// What bash offers for command lines, whose last word is the one that is being typed.
class CompletionTest : public testing::Test {
 protected:
  CompletionTest() {
    ExitCode code = kSuccess;
    std::ofstream(folder_ / "completion.bash") << bash_completion(*make_program(code));
  }

  std::vector<std::string> offered(const std::vector<std::string>& words) {
    std::ofstream script(folder_ / "ask.bash");
    script << "source '" << (folder_ / "completion.bash").string() << "'\nCOMP_WORDS=(";
    for (const std::string& word : words) script << " '" << word << "'";
    script << ")\nCOMP_CWORD=" << words.size() - 1
           << "\n_w5xde\nfor word in \"${COMPREPLY[@]}\"; do echo $word; done\n";
    script.close();
    const auto output = folder_ / "offered.txt";
    std::filesystem::remove(output);
    std::vector<Child> children;
    children.push_back(Child::start({"bash", "--norc", (folder_ / "ask.bash").string()}, output).value());
    const Status status = wait_for(children, {});
    EXPECT_TRUE(status.ok()) << status.error().message;
    std::ifstream in(output);
    std::vector<std::string> offered;
    for (std::string word; in >> word;) offered.push_back(word);
    return offered;
  }

  TemporaryFolder folder_;
};

using Offer = std::vector<std::string>;

TEST_F(CompletionTest, commands_are_completed) {
  EXPECT_EQ(offered({"w5xde", "tr"}), Offer{"train"});
  EXPECT_EQ(offered({"w5xde", "e"}), (Offer{"eval", "export"}));
  EXPECT_EQ(offered({"w5xde", "completion", ""}), Offer{"bash"});
}

TEST_F(CompletionTest, flags_are_those_of_the_command) {
  EXPECT_EQ(offered({"w5xde", "train", "--learn"}), Offer{"--learning-rate"});
  EXPECT_EQ(offered({"w5xde", "train", "runs/a", "--epochs", "3", "--nes"}), Offer{"--nesterov"});
  EXPECT_EQ(offered({"w5xde", "train", "--attempt"}), Offer());
  EXPECT_EQ(offered({"w5xde", "join", "HOST:5555", "--attempt"}), Offer{"--attempts"});
  EXPECT_EQ(offered({"w5xde", "--he"}), (Offer{"--help", "--help-all"}));
}

TEST_F(CompletionTest, values_are_completed_where_they_are_known) {
  EXPECT_EQ(offered({"w5xde", "train", "--mode", ""}), (Offer{"sync", "async"}));
  EXPECT_EQ(offered({"w5xde", "train", "--mode", "=", "a"}), Offer{"async"}) << "--mode=a";
  EXPECT_EQ(offered({"w5xde", "train", "--mode", "="}), (Offer{"sync", "async"})) << "--mode=";
  EXPECT_EQ(offered({"w5xde", "serve", "--optimizer", "adam"}), (Offer{"adam", "adamw"}));
  EXPECT_EQ(offered({"w5xde", "plan", "--preset", "adaptive"}), (Offer{"adaptive", "adaptive-lossy"}));
  EXPECT_EQ(offered({"w5xde", "join", "--log", "v"}), Offer{"verbose"});
  EXPECT_EQ(offered({"w5xde", "eval", "--device", "c"}), (Offer{"cpu", "cuda"}));
  EXPECT_EQ(offered({"w5xde", "train", "--nesterov", "t"}), Offer{"true"});
}

TEST_F(CompletionTest, everything_else_is_left_to_bash_which_offers_files) {
  EXPECT_EQ(offered({"w5xde", "train", "ru"}), Offer());
  EXPECT_EQ(offered({"w5xde", "train", "--json", ""}), Offer());
  EXPECT_EQ(offered({"w5xde", "train", "--json", "--mo"}), Offer()) << "a value, whatever it looks like";
  EXPECT_EQ(offered({"w5xde", "train", "--insecure", "--slo"}), Offer{"--slots"}) << "takes no value";
}

TEST_F(CompletionTest, every_value_that_is_offered_is_accepted) {
  RunConfig config;
  std::size_t known = 0;
  for (const Setting& setting : settings_of(config)) {
    for (const std::string& choice : setting.choices) {
      const Status status = setting.set(choice);
      EXPECT_TRUE(status.ok()) << setting.name << ": " << (status.ok() ? "" : status.error().message);
    }
    if (!setting.choices.empty()) ++known;
  }
  EXPECT_GE(known, 15u);
  for (const char* tier : {"silent", "normal", "verbose"}) EXPECT_TRUE(parse_log_tier(tier).ok()) << tier;
}

}  // namespace
}  // namespace w5xde
