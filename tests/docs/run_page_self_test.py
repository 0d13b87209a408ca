#!/usr/bin/python3
"""Pages that are true, and pages that are not: run_page must tell one from the other."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve()
FENCE = "```"


def page_of(*blocks):
    return "\n\n".join(f"{FENCE}{info}\n{text}\n{FENCE}" for info, text in blocks) + "\n"


class RunPage(unittest.TestCase):
    def run_page(self, text):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(text)
            return subprocess.run([sys.executable, HERE.with_name("run_page"), page, "--build", folder], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def assert_true(self, text, passed):
        result = self.run_page(text)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn(f"page.md: {passed} passed, 0 failed", result.stdout)

    def assert_wrong(self, text, said):
        result = self.run_page(text)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(said, result.stdout)

    def test_output_is_what_the_page_says(self):
        self.assert_true(page_of(("console", "$ echo one; echo 2 s\none\n… s\n$ true")), 2)

    def test_other_output_is_reported(self):
        self.assert_wrong(page_of(("console", "$ echo one\ntwo")), "it printed:\none")
        self.assert_wrong(page_of(("console", "$ echo one; echo two\none")), "it printed:\none\ntwo")
        self.assert_wrong(page_of(("console", "$ true\none")), "0 passed, 1 failed")
        self.assert_wrong(page_of(("console", "$ echo accuracy 0.17\naccuracy 0.8…")), "accuracy 0.17")

    def test_an_ellipsis_alone_is_any_number_of_lines_and_in_a_line_stays_in_it(self):
        self.assert_true(page_of(("console", "$ seq 5\n1\n…\n5")), 1)
        self.assert_true(page_of(("console", "$ seq 2\n1\n…\n2")), 1)
        self.assert_wrong(page_of(("console", "$ seq 5\n1…5")), "0 passed, 1 failed")

    def test_errors_are_output_and_a_failure_is_reported_whatever_it_prints(self):
        self.assert_true(page_of(("console", "$ echo one >&2\none")), 1)
        self.assert_wrong(page_of(("console", "$ echo one; exit 3\none")), "exit code 3")

    def test_commands_share_a_folder_and_may_go_on_in_the_next_line(self):
        self.assert_true(page_of(("console", "$ echo one > a"), ("console", "$ cat \\\n    a\none")), 2)

    def test_a_file_that_is_shown_is_the_file(self):
        text = (HERE.parents[2] / ".gitignore").read_text().rstrip("\n")
        self.assert_true(page_of(("text .gitignore", text)), 1)
        self.assert_wrong(page_of(("text .gitignore", text + "\nmore")), "is not what")

    def test_nothing_is_left_out(self):
        self.assert_wrong("No blocks.\n", "0 passed, 0 failed")
        self.assert_wrong(page_of(("console", "echo one")), "begins with its command")
        self.assert_wrong(f"{FENCE}console\n$ true\n", "nothing closes")


if __name__ == "__main__":
    unittest.main()
