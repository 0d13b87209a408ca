#include "pool.h"

#include <chrono>
#include <fstream>
#include <stdexcept>

#include "base/file.h"
#include "data/gzip_reader.h"

namespace w5xde {

namespace {

constexpr auto kPatience = std::chrono::seconds(100);

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

// The first `count` elements of an IDX file of bytes, as a smaller IDX file.
void cut_idx(const std::filesystem::path& from, const std::filesystem::path& to, std::uint32_t count) {
  const MappedFile file = MappedFile::open(from).value();
  GzipReader reader(file.bytes());
  const auto read = [&](std::size_t bytes) {
    std::string text(bytes, '\0');
    if (!reader.read(std::as_writable_bytes(std::span(text))).ok())
      throw std::runtime_error("bad " + from.string());
    return text;
  };
  std::string cut = read(4);
  const int rank = cut[3];
  read(4);
  for (int shift = 24; shift >= 0; shift -= 8) cut += static_cast<char>(count >> shift);
  std::size_t element = 1;
  for (int dimension = 1; dimension < rank; ++dimension) {
    const std::string size = read(4);
    element *= static_cast<unsigned char>(size[3]);  // images are smaller than 256 × 256
    cut += size;
  }
  cut += read(count * element);
  std::ofstream(to, std::ios::binary) << cut;
}

}  // namespace

void PrintTo(const Workload& workload, std::ostream* out) {
  *out << workload.name;
}

Pool::Pool(Workload workload) : workload_(std::move(workload)) {
  std::filesystem::create_directory(home());
  if (workload_.name.find("images") != std::string::npos) write_few_images(folder_ / "images");
}

Process Pool::start(const Words& arguments) const {
  return start(arguments, {});
}

Process Pool::start(const Words& arguments, Process::Options options) const {
  options.folder = folder_.path();
  options.environment.try_emplace("HOME", home().string());
  Words command = {W5XDE_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return {command, options};
}

Words Pool::coordinator(const std::string& command, const Words& more) {
  Words words = {command, "run"};
  if (!begun_) words.insert(words.end(), workload_.flags.begin(), workload_.flags.end());
  begun_ = true;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Process Pool::train(unsigned nodes, const Words& more) {
  Words words = {"--nodes", std::to_string(nodes)};
  words.insert(words.end(), more.begin(), more.end());
  return start(coordinator("train", words));
}

Process Pool::serve(const Words& more) {
  Words words = {"--listen", address_};
  words.insert(words.end(), more.begin(), more.end());
  Process process = start(coordinator("serve", words));
  const std::string line = process.wait_for_line("listens on ");
  address_ = line.substr(line.rfind(' ') + 1);
  return process;
}

Process Pool::join(const std::string& name, const Words& more) const {
  Words words = {"join", address_, "--name", name};
  words.insert(words.end(), more.begin(), more.end());
  return start(words);
}

nlohmann::json Pool::status() const {
  Process asking = start({"status", address_, "--json", "status.json", "--wait", "60"});
  if (asking.wait() != 0) throw std::runtime_error("no status: " + asking.said());
  return read_json(folder_ / "status.json");
}

void Pool::wait_for(const std::string& number, std::uint64_t least) const {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (status().at(number).get<std::uint64_t>() < least) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("too few for too long: " + number);
  }
}

nlohmann::json Pool::summary() const {
  return read_json(run() / "summary.json");
}

std::uint64_t step_in(const std::string& line) {
  return std::stoull(line.substr(line.find("step ") + 5));
}

void write_few_images(const std::filesystem::path& folder) {
  const std::filesystem::path all = "/usr/share/datasets/fashion-mnist";
  std::filesystem::create_directory(folder);
  constexpr std::uint32_t kFewTestImages = 32;
  for (const std::string kind : {"images-idx3-ubyte", "labels-idx1-ubyte"}) {
    cut_idx(all / ("train-" + kind + ".gz"), folder / ("train-" + kind), kFewImages);
    cut_idx(all / ("t10k-" + kind + ".gz"), folder / ("t10k-" + kind), kFewTestImages);
  }
}

}  // namespace w5xde
