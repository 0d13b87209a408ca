#!/usr/bin/python3
"""Breaks each rule of tools/tidy once, in a small tree, and looks that exactly that is reported."""

import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TIDY = pathlib.Path(__file__).with_name("tidy")


def load_tidy():
    sys.dont_write_bytecode = True  # a program without a suffix would leave a "tidyc" beside it
    loader = importlib.machinery.SourceFileLoader("tidy", str(TIDY))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", loader))
    loader.exec_module(module)
    return module


tidy = load_tidy()

HEADER = "#pragma once\n\nint {name}();\n"
# Sources that breaks and no breaks bring along.
SOURCES = [f"{folder}/{name}.cpp" for name in ("a", "a_test", "b", "utils", "common", "tls_helpers")
           for folder in ("apps/w5xde", "bench", "engines/torch", "src/base", "src/codec", "src/coordinator",
                          "src/lease", "src/misc", "src/net", "src/node", "src/record", "src/wire",
                          "tests/e2e", "tests/sim")]
CLEAN = {
    "CMakeLists.txt": "project(clean)\nadd_library(all\n" + "\n".join(SOURCES) + ")\n",
    "src/CMakeLists.txt": "foreach(name view link join)\n"
                          "  add_library(${name} tensor/view net/link.cpp node/join.cpp ../src/codec/pack.cpp)\n"
                          "endforeach()\n",
    "src/base/CMakeLists.txt": "add_library(base log.cpp bytes_test.cpp)\n",
    "apps/CMakeLists.txt": "add_executable(w5xde w5xde/main.cpp ${PROJECT_SOURCE_DIR}/engines/torch/engine.cpp)\n",
    "tests/CMakeLists.txt": "add_executable(tests support/folder.cpp ../src/net/link_test.cpp ../bench/codec.cpp)\n",
    "README.md": "A clean tree.\n",
    "include/w5xde/api.h": HEADER.format(name="api"),
    "src/base/bytes.h": '#pragma once\n\n#include "w5xde/api.h"\n',
    "src/base/bytes_test.cpp": '#include "base/bytes.h"\n\n#include "support/folder.h"\n',
    "src/base/log.cpp": '#include "w5xde/api.h"\n\n#include <spdlog/spdlog.h>\n',
    "src/tensor/view.h": HEADER.format(name="view"),
    "src/tensor/view.cpp": '#include "tensor/view.h"\n\n#include "base/bytes.h"\n',
    "src/codec/pack.cpp": "#include <lz4.h>\n#include <zstd.h>\n",
    "src/net/link.h": HEADER.format(name="link"),
    "src/net/link.cpp": '#include "net/link.h"\n\n#include <asio.hpp>\n\n#include "tensor/view.h"\n',
    "src/net/link_test.cpp": '#include "net/link.h"\n\n#include <openssl/ssl.h>\n',
    "src/node/join.h": HEADER.format(name="join"),
    "src/node/join.cpp": '#include "node/join.h"\n\n#include "net/link.h"\n',
    "engines/torch/engine.cpp": "#include <torch/torch.h>\n",
    "apps/w5xde/main.cpp": '#include <CLI/CLI.hpp>\n\n#include "node/join.h"\n\nconst char* home = getenv("HOME");\n'
                           "int used = api() + view() + link() + join();\n",
    "bench/codec.cpp": "#include <lz4.h>\n",
    "tests/support/folder.h": HEADER.format(name="folder"),
    "tests/support/folder.cpp": '#include "support/folder.h"\n',
    "build/release/generated.h": "int broken; \n",
}


def function_of(lines, head="int f() {", indent=""):
    """A function of that many lines, its head and closing brace among them."""
    head_lines = head.count("\n") + 1
    body = f"{indent}  call();\n" * (lines - head_lines - 1)
    return f"{indent}{head}\n{body}{indent}}}\n"


def with_link(text):
    """src/net/link.h with this at its end, in line 4."""
    return {"src/net/link.h": CLEAN["src/net/link.h"] + text}


def members_of(count, more=""):
    """A class with that many data members, in line 3."""
    members = "".join(f"  int a{i}_ = 0;  // b_\n" for i in range(count))
    return {"src/net/link.h": "#pragma once\n\nclass Link {\n public:\n  int link() const { return a0_; }\n\n"
                              " private:\n  struct Part {\n    int part = 0;\n  };\n  void join(int b_);\n" +
                              members + more + "};\n"}


def tuning(text, *uses):
    return {"src/lease/tuning.h": "#pragma once\n\n" + text,
            "src/lease/a.cpp": '#include "lease/tuning.h"\n\nint a = ' + " +\n".join(uses) + ";\n"}


# What breaks the rule, and the beginning of the one finding that it must give.
BREAKS = {
    # include edges
    "base_includes_tensor": ({"src/base/a.cpp": '#include "tensor/view.h"\n'}, "src/base/a.cpp:1: src/base may not"),
    "codec_includes_net": ({"src/codec/a.cpp": '\n#include "net/link.h"\n'}, "src/codec/a.cpp:2: src/codec may not"),
    "a_relative_include": ({"src/base/a.cpp": '#include "../net/link.h"\n'}, "src/base/a.cpp:1: src/base may not"),
    "angle_brackets": ({"src/base/a.cpp": "#include <net/link.h>\n"}, "src/base/a.cpp:1: src/base may not"),
    "public_api_includes_base": (
        {"include/w5xde/b.h": '#pragma once\n#include "base/bytes.h"\n', "src/base/b.cpp": '#include "w5xde/b.h"\n',
         "src/base/a.cpp": '#include "w5xde/b.h"\n'},
        "include/w5xde/b.h:2: include may not include src/base",
    ),
    "coordinator_and_node": (
        {"src/coordinator/a.cpp": '#include "node/join.h"\n'}, "src/coordinator/a.cpp:1: src/coordinator may not"),
    "engine_includes_net": ({"engines/torch/a.cpp": '#include "net/link.h"\n'}, "engines/torch/a.cpp:1: engines/torch"),
    "sources_include_tests": ({"src/net/a.cpp": '#include "support/folder.h"\n'}, "src/net/a.cpp:1: src/net may not"),
    "an_unknown_folder": ({"src/misc/a.cpp": "int a;\n"}, "src/misc/a.cpp:1: src/misc has no line"),
    # homes of heavy dependencies
    "torch_in_node": ({"src/node/a.cpp": "#include <torch/torch.h>\n"}, "src/node/a.cpp:1: libtorch is only for"),
    "c10_in_tests": ({"tests/e2e/a.cpp": "#include <c10/core/a.h>\n"}, "tests/e2e/a.cpp:1: libtorch is only for"),
    "asio_in_node": ({"src/node/a.cpp": "#include <asio/ssl.hpp>\n"}, "src/node/a.cpp:1: asio is only for src/net"),
    "openssl_in_wire": ({"src/wire/a.cpp": "#include <openssl/ssl.h>\n"}, "src/wire/a.cpp:1: openssl is only for"),
    "lz4_in_net": ({"src/net/a.cpp": "#include <lz4frame.h>\n"}, "src/net/a.cpp:1: lz4 is only for src/codec, bench"),
    "zstd_in_bench": ({"bench/a.cpp": "#include <zstd.h>\n"}, "bench/a.cpp:1: zstd is only for src/codec"),
    "libdeflate_in_tests": ({"tests/e2e/a.cpp": "#include <libdeflate.h>\n"}, "tests/e2e/a.cpp:1: libdeflate is only"),
    "spdlog_in_apps": ({"apps/w5xde/a.cpp": "#include <spdlog/spdlog.h>\n"}, "apps/w5xde/a.cpp:1: spdlog is only for"),
    "xxhash_in_wire": ({"src/wire/a.cpp": "#include <xxhash.h>\n"}, "src/wire/a.cpp:1: xxhash is only for src/base"),
    "sqlite_in_tests": ({"tests/e2e/a.cpp": "#include <sqlite3.h>\n"}, "tests/e2e/a.cpp:1: sqlite is only for"),
    "cli11_in_node": ({"src/node/a.cpp": "#include <CLI/CLI.hpp>\n"}, "src/node/a.cpp:1: CLI11 is only for apps"),
    "toml_in_record": ({"src/record/a.cpp": "#include <toml++/toml.h>\n"}, "src/record/a.cpp:1: toml++ is only for"),
    "json_in_net": ({"src/net/a.cpp": "#include <nlohmann/json.hpp>\n"}, "src/net/a.cpp:1: nlohmann is only for"),
    # headers
    "nobody_includes_it_first": (
        {"src/net/a.h": "#pragma once\n", "src/net/b.cpp": '#include <asio.hpp>\n#include "net/a.h"\n'},
        "src/net/a.h:1: no .cpp includes this header first"),
    "no_pragma_once": ({"src/net/link.h": "int link();\n"}, "src/net/link.h:1: no #pragma once"),
    "using_namespace": ({"src/net/link.h": "#pragma once\nusing namespace std;\n"},
                        "src/net/link.h:2: using namespace"),
    # text
    "fixme": ({"README.md": "Read me.\nFIXME: now\n"}, "README.md:2: FIXME left over"),
    "todo": ({"src/net/a.cpp": "// TODO(me): tests\n"}, "src/net/a.cpp:1: TODO left over"),
    "hack": ({"cmake/a.cmake": "# HACK\n"}, "cmake/a.cmake:1: HACK left over"),
    "three_crosses": ({"src/net/a.cpp": "int a;  // XXX why\n"}, "src/net/a.cpp:1: XXX left over"),
    "tab": ({"src/net/a.cpp": "\tint a;\n"}, "src/net/a.cpp:1: tab"),
    "trailing_space": ({"README.md": "Read me. \n"}, "README.md:1: white space"),
    "carriage_return": ({"README.md": "Read me.\r\n"}, "README.md:1: white space"),
    "no_newline": ({"README.md": "Read me.\nNow."}, "README.md:2: no newline"),
    # lengths
    "long_cpp_line": ({"src/net/a.cpp": "//" + "x" * 119 + "\n"}, "src/net/a.cpp:1: line of 121"),
    "long_cmake_line": ({"cmake/a.cmake": "#" * 121 + "\n"}, "cmake/a.cmake:1: line of 121"),
    "long_python_line": ({"scripts/a": "#!/usr/bin/python3\n" + "#" * 121 + "\n"}, "scripts/a:2: line of 121"),
    "long_file": ({"src/net/a.cpp": "int a;\n" * 501}, "src/net/a.cpp:501: file of 501 lines"),
    "long_function": ({"src/net/a.cpp": "int a;\n" + function_of(81)}, "src/net/a.cpp:2: function of 81 lines"),
    "long_method": (
        {"src/net/a.cpp": "class A {\n public:\n" + function_of(81, "int f() const {", "  ") + "};\n"},
        "src/net/a.cpp:3: function of 81 lines"),
    "long_test": ({"src/net/a_test.cpp": function_of(81, "TEST(A, is_long) {")},
                  "src/net/a_test.cpp:1: function of 81"),
    "long_function_with_a_long_head": (
        {"src/net/a.cpp": function_of(81, "template <class T>\nA::A(int a,  // why\n     int b)\n    : a_(a) {")},
        "src/net/a.cpp:1: function of 81 lines"),
    "long_operator": (
        {"src/net/a.cpp": function_of(81, "bool operator!=(int a, int b) {")}, "src/net/a.cpp:1: function of 81"),
    # habits
    "getenv": ({"src/net/a.cpp": 'auto home = std::getenv("HOME");\n'}, "src/net/a.cpp:1: getenv below apps/"),
    "sleep_for": ({"src/net/a_test.cpp": "std::this_thread::sleep_for(1s);\n"}, "src/net/a_test.cpp:1: sleep_for in"),
    "sleep_until": ({"tests/sim/a.cpp": "std::this_thread::sleep_until(x);\n"}, "tests/sim/a.cpp:1: sleep_until in"),
    "usleep": ({"tests/sim/a.cpp": "usleep(5);\n"}, "tests/sim/a.cpp:1: usleep( in"),
    "skip": ({"tests/sim/a.cpp": 'GTEST_SKIP() << "later";\n'}, "tests/sim/a.cpp:1: GTEST_SKIP"),
    "disabled": ({"src/net/a_test.cpp": "TEST(A, DISABLED_b) {}\n"}, "src/net/a_test.cpp:1: DISABLED_"),
    # names
    "a_util_folder": ({"docs/util/a.md": "a\n", "docs/util/b.md": "b\n"}, "docs/util:1: 'util' says nothing"),
    "a_utils_file": ({"src/net/utils.cpp": "int a;\n"}, "src/net/utils.cpp:1: 'utils' says nothing"),
    "a_common_file": ({"src/net/common.cpp": "int a;\n"}, "src/net/common.cpp:1: 'common' says nothing"),
    "a_helpers_file": ({"tests/sim/tls_helpers.cpp": "int a;\n"}, "tests/sim/tls_helpers.cpp:1: 'helpers' says"),
    "a_manager": ({"src/net/a.cpp": "class LinkManager {};\n"}, "src/net/a.cpp:1: 'class LinkManager' says"),
    "a_handler": ({"src/net/a.cpp": "struct FrameHandler;\n"}, "src/net/a.cpp:1: 'struct FrameHandler' says"),
    "a_helper": ({"src/net/a.cpp": "class Helper final {};\n"}, "src/net/a.cpp:1: 'class Helper' says"),
    # classes
    "a_class_in_two_sources": (
        {"src/net/a.cpp": "Link::Link() {}\n", "src/net/b.cpp": "int a;\nstd::string Link::name(int a) const {}\n"},
        "src/net/b.cpp:2: class Link is also in src/net/a.cpp"),
    "a_nested_class_in_another_source": (
        {"src/net/a.cpp": "void Link::read() {}\n", "src/net/b.cpp": "Result<int> Link::Part::read() {}\n"},
        "src/net/b.cpp:1: class Link is also in"),
    "too_many_members": (members_of(26), "src/net/link.h:3: Link has 26 data members, 25 are allowed"),
    "too_many_members_of_all_kinds": (
        members_of(20, "  int b_ W5XDE_GUARDED_BY(mutex_);\n  std::function<void(int)> c_;\n  A& d_;\n"
                       "  int e_ = 1;  // f_\n"
                       "  std::array<int, 2>\n      f_{};\n  const std::unique_ptr<A> g_;\n"),
        "src/net/link.h:3: Link has 26 data members"),
    # what nothing uses
    "an_unused_function": (with_link("int unused(int a);\n"), "src/net/link.h:4: nothing uses unused()"),
    "an_unused_function_with_a_body": (
        {**with_link("std::string unused();\n"), "src/net/a.cpp": "std::string unused() {\n}\n"},
        "src/net/link.h:4: nothing uses unused()"),
    "an_unused_method": (
        {**with_link("class Link {\n public:\n  const A& unused(int a) const;\n};\n"),
         "src/net/a.cpp": "const A& Link::unused(int a) const {\n}\n"},
        "src/net/link.h:6: nothing uses unused()"),
    "an_unused_accessor": (
        with_link("class Link {\n public:\n  int unused() const { return a_; }\n\n private:\n  int a_;\n};\n"),
        "src/net/link.h:6: nothing uses unused()"),
    "a_function_that_only_a_comment_uses": (
        {**with_link("int unused();\n"), "src/net/a.cpp": "// unused() is not used\n"},
        "src/net/link.h:4: nothing uses"),
    "an_unused_constant": ({"src/net/a.cpp": "constexpr int kUnused = 3;\n"}, "src/net/a.cpp:1: nothing uses kUnused"),
    "an_unused_constant_of_a_header": (
        with_link("inline constexpr std::array<int, 2> kUnused{1, 2};\n"), "src/net/link.h:4: nothing uses kUnused"),
    "a_header_that_nothing_includes": (
        {"src/net/a.h": "#pragma once\n", "src/net/a.cpp": '#include "net/a.h"\n'},
        "src/net/a.h:1: nothing includes this header but its own source file"),
    "a_source_that_nothing_builds": ({"src/net/c.cpp": "int a;\n"}, "src/net/c.cpp:1: no CMakeLists.txt builds"),
    # words
    "a_word_in_a_comment": ({"src/net/a.cpp": "int a;  // of late\n"}, "src/net/a.cpp:1: 'of late': write recently"),
    "a_word_in_a_text": ({"src/net/a.cpp": 'auto a = "the crew";\n'}, "src/net/a.cpp:1: 'crew': write roster"),
    "a_word_in_a_page": ({"README.md": "A.\nWhichever is free.\n"}, "README.md:2: 'Whichever': write what is meant"),
    "a_word_in_a_script": ({"scripts/a": "# So many.\n"}, "scripts/a:1: 'So many': write the number"),
    **{f"the_word_{word.replace(' ', '_')}": ({"docs/a.md": f"It is {word} here.\n"}, f"docs/a.md:1: '{word}'")
       for word in ("dear", "there is one to", "comes to", "nursery", "murderer", "keeper", "shelf", "the seeds")},
    # tuning
    "a_tuned_number_elsewhere": (
        {"src/lease/a.cpp": "constexpr double kA = 0.5, kB = 2;\nint a = kA + kB;\n"},
        "src/lease/a.cpp:1: kA belongs in src/lease/tuning.h"),
    "a_tuned_duration_elsewhere": (
        {"src/lease/a.cpp": "namespace {\nconstexpr Duration kA = std::chrono::seconds(1);\n}\nint a = kA;\n"},
        "src/lease/a.cpp:2: kA belongs in src/lease/tuning.h"),
    "a_tuned_number_without_a_comment": (
        tuning("inline constexpr double kA = 1;\n", "kA"), "src/lease/tuning.h:3: kA has no comment"),
    "too_many_tuned_numbers": (
        tuning("".join(f"inline constexpr double kA{i} = 1;  // why\n" for i in range(33)),
               *(f"kA{i}" for i in range(33))),
        "src/lease/tuning.h:35: kA32 is constant 33, 32 are allowed"),
}

# What looks like a break and is none.
NO_BREAKS = {
    "a_function_of_the_most_lines": {"src/net/a.cpp": function_of(80)},
    "a_long_lambda": {"src/net/a.cpp": function_of(90, "const auto table = [](int a) {")},
    "a_long_argument": {"src/net/a.cpp": function_of(90, "const bool made = install(\"a\", [&]() {")},
    "a_long_class": {"src/net/a.cpp": function_of(90, "class THREAD(capability()) A {")},
    "a_long_namespace": {"src/net/a.cpp": function_of(90, "namespace a {  // (a)") + function_of(90, "enum class E {")},
    "a_long_table": {"src/net/a.cpp": function_of(90, "const int table[size()] = {")},
    "the_longest_line": {"src/net/a.cpp": "//" + "\N{HORIZONTAL ELLIPSIS}" * 118 + "\n"},
    "words_in_comments": {"src/net/a_test.cpp": "int a;  // no sleep_for, no getenv\n"},
    "parts_of_words": {"src/net/a.cpp": 'auto a = "w5xde-XXXXXX";\nint commonly, setgetenvy;\n'},
    "a_program_that_sleeps": {"apps/w5xde/a.cpp": "std::this_thread::sleep_for(1s);\n"},
    "a_binary_file": {"tests/data/golden.bin": "\0 \t \n TODO "},
    "a_fuzzing_corpus": {"tests/fuzz/corpus/1": "TODO "},
    "a_class_with_the_most_members": members_of(25),
    "a_class_in_a_source_and_its_test": {
        "src/net/a.cpp": "void Link::a() {}\n", "src/net/a_test.cpp": "int Link::b() {}\n"},
    "classes_of_one_name_in_two_sources": {
        "src/net/a.cpp": "void Part::a() {}\n", "src/net/b.cpp": "class Part : A {\n};\nvoid Part::a() {}\n"},
    "functions_of_a_namespace": {
        "src/net/a.cpp": "int f(A::B a) {}\n", "src/net/b.cpp": "auto a = A::f();\nint g(A::C a);\n"},
    "an_interface_that_is_used": {
        **with_link("class A {\n  virtual int read() = 0;\n};\nclass B : A {\n  int read() override;\n};\n"),
        "src/net/a.cpp": "int B::read() {\n}\nint f(A& a) {\n  return a.read();\n}\n"},
    "words_that_are_names": {"src/net/a.cpp": "int crew = dear;\n", "docs/a.md": "Screws come together.\n"},
    "whole_numbers_of_a_lease": {"src/lease/a.cpp": "constexpr int kA = 3;\nint a = kA;\n"},
    "tuned_numbers_with_comments": tuning(
        "// Why.\ninline constexpr double kA = 1;\ninline constexpr Duration kB = kA;  // why\n", "kB"),
}


class TidySelfTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="w5xde-tidy-"))
        self.write(CLEAN)

    def tearDown(self):
        shutil.rmtree(self.root)

    def write(self, files):
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(text.encode())

    def tidy(self, root=None):
        """As ctest runs it."""
        return subprocess.run([TIDY, root or self.root], capture_output=True, text=True)

    def test_a_clean_tree_passes(self):
        done = self.tidy()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_finding_is_printed_and_fails(self):
        self.write({"README.md": "x \n"})
        done = self.tidy()
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertEqual(done.stdout, "README.md:1: white space at the end of the line\n")

    def test_a_tree_without_files_is_an_error(self):
        self.assertNotEqual(self.tidy(self.root / "nothing").returncode, 0)

    def test_each_break_gives_its_one_finding(self):
        for name, (files, expected) in BREAKS.items():
            with self.subTest(name):
                self.tearDown()
                self.setUp()
                self.write(files)
                found = tidy.findings(self.root)
                self.assertEqual(len(found), 1, found)
                self.assertEqual(found[0][: len(expected)], expected)

    def test_what_only_looks_like_a_break_passes(self):
        for name, files in NO_BREAKS.items():
            with self.subTest(name):
                self.tearDown()
                self.setUp()
                self.write(files)
                self.assertEqual(tidy.findings(self.root), [])

    def test_findings_of_several_rules_come_in_order_of_place(self):
        self.write({"src/net/a.cpp": "\tint a;\n// TODO\n", "README.md": "x \n"})
        found = [line.rsplit(":", 1)[0] for line in tidy.findings(self.root)]
        self.assertEqual(found, ["README.md:1", "src/net/a.cpp:1", "src/net/a.cpp:2"])

    def test_what_git_ignores_is_ignored(self):
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.write({".gitignore": "/build/\n/out/\n", "out/a.cpp": "\tint a;\n", "new.md": "x \n"})
        self.assertEqual(tidy.findings(self.root), ["new.md:1: white space at the end of the line"])


if __name__ == "__main__":
    unittest.main()
