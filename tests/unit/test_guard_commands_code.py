"""Code that is part of a command: Python and other languages, databases."""

from __future__ import annotations

import pytest
from tests.unit.guard_calls import effects, said, told

from remuda.guard.model import UNKNOWN, Evaluate


def python(code: str) -> set[str]:
    return {said(effect) for effect in effects(["python3", "-c", code])}


@pytest.mark.parametrize(
    "code",
    [
        "print(sum(range(10)))",
        "print('os.system(1)', 'rm -rf /')",
        "import json, sys; print(json.load(sys.stdin)['a'])",
        "import os; print(os.getcwd(), os.path.join('a', 'b'), os.listdir('.'))",
        "import re\nfor line in ['a']:\n    print(re.sub('a', 'b', line).replace('c', 'd'))",
        "from pathlib import Path; print([p.name for p in Path('.').glob('*.md')])",
        "def f(n):\n    return n * 2\nprint(f(3), (lambda x: x)(1))",
        "import collections as c; print(c.Counter('abc').most_common(1))",
        "x = []; x.append(1); x.remove(1); print(x)",
    ],
)
def test_pure_python_does_nothing(code: str) -> None:
    assert python(code) == set()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print(open('a').read())", {"read a"}),
        ("open('a', 'w').write('x')", {"truncate a"}),
        ("open('a', mode='ab')", {"append a"}),
        ("open(x, m)", {"truncate ?"}),
        ("p = 'a'; open(p + '/b', 'x')", {"create a/b"}),
        ("from pathlib import Path as P; (P('a') / 'b').write_text('x')", {"truncate a/b"}),
        ("from pathlib import Path; p = Path('a'); p.replace('b')", {"rename a", "create b"}),
        ("import os; os.remove('a')", {"delete! a"}),
        ("import os as o; o.makedirs('a')", {"create a"}),
        ("from shutil import rmtree; rmtree('a')", {"delete-tree! a"}),
        ("import shutil; shutil.copy('a', 'b')", {"read a", "truncate b"}),
        ("import os; os.symlink('t', 'l')", {"link l"}),
        ("import os; os.system('rm a')", {"delete a"}),
        ("import subprocess; subprocess.run(['rm', '-r', 'a'])", {"delete-tree a"}),
        ("import subprocess as s; s.check_output('rm a', shell=True)", {"delete a"}),
        ("import os; os.execvp('rm', ['rm', 'a'])", {"delete a"}),
        ("import urllib.request as u; u.urlopen('http://h/p')", {"get h"}),
        ("import requests; requests.post('http://h', data=1)", {"send h file"}),
        ("import os; print(os.environ['HOME'])", {"show $HOME"}),
        ("import os; print(os.environ)", {"show $*"}),
        ("import mine; mine.run()", {"execute project"}),
        ("import xml.etree.ElementTree as E; E.ElementTree().write('a')", {"truncate a"}),
    ],
)
def test_plain_python_is_followed(code: str, expected: set[str]) -> None:
    assert python(code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "exec('x')",
        "eval(input())",
        "__import__('os').system('x')",
        "import os; getattr(os, 'system')('x')",
        "import os; f = os.system; f('x')",
        "import os; list(map(os.system, ['x']))",
        "import sys; sys.modules['os'].system('x')",
        "import glob; glob.os.remove('x')",
        "().__class__.__base__.__subclasses__()",
        "import socket",
        "import ctypes",
        "from os import *; system('x')",
        "import importlib; importlib.import_module('os')",
        "o = open; o('a', 'w')",
        "import operator, os; list(map(operator.methodcaller('system', 'x'), [os]))",
        "def broken(:",
        "import os; os.system(x)",
    ],
)
def test_python_that_hides_what_it_does_cannot_be_read(code: str) -> None:
    assert any(text.startswith("evaluate") for text in python(code))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python3 a.py", {"execute project"}),
        ("python3 -V", set()),
        ("python3 -Ic 'print(1)'", set()),
        ("python3 -m pytest -q", {"execute project"}),
        ("python3 -m json.tool a", {"read a"}),
        ("python3 -m json.tool a b", {"read a", "truncate b"}),
        ("python3 -m venv d", {"create d"}),
        ("python3 -m http.server", {"system network"}),
        ("python3", set()),
        ("node --test", {"execute project"}),
        ("node --check a.js", {"read a.js"}),
        ("node -r ./x -e 1", {"execute project"}),
        ("perl -pi -e 's/a/b/' f", {"edit f"}),
        ("perl -lane 'print $F[0]' f", {"read f"}),
        ("perl -ne 'print' 'rm x |'", {"read rm x |", "unknown"}),
        ("ruby -c a.rb", {"read a.rb"}),
        ("deno eval 'console.log(1)'", set()),
    ],
)
def test_what_interpreters_run(command: str, expected: set[str]) -> None:
    assert told(command) == expected


def test_code_on_standard_input_is_read_and_unknown_code_is_not() -> None:
    assert told("python3 -", text="import os; os.remove('a')") == {"delete! a"}
    (effect,) = effects(["python3"], given=frozenset({"network"}))
    assert effect == Evaluate(language="python", origin=frozenset({"network"}))
    (effect,) = effects(["node", "-e", UNKNOWN])
    assert isinstance(effect, Evaluate)


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("node -e", "console.log([1, 2].map(x => x * 2), 'rm -rf /')"),
        ("node -p", "require('./package.json').version"),
        ("node -e", "console.log('a'.replace(/x/g, 'y'))"),
        ("ruby -e", "puts [1, 2].map { |x| x * 2 }.inspect"),
        ("perl -e", 'print "git push\\n"'),
        ("perl -ne", "print if /foo/"),
        ("php -r", "echo 1 + 1;"),
        ("lua -e", "print(1)"),
    ],
)
def test_pure_code_of_other_languages(program: str, code: str) -> None:
    assert {said(effect) for effect in effects([*program.split(), code])} <= {"read ./package.json"}


@pytest.mark.parametrize(
    ("program", "code", "expected"),
    [
        ("node -e", "require('child_process').execSync('rm a')", "delete a"),
        ("node -e", "require('fs').writeFileSync('a', '')", "truncate! a"),
        ("node -e", "require('fs').rmSync('a', {recursive: true})", "delete-tree! a"),
        ("node -e", "console.log(process.env.HOME)", "show $HOME"),
        ("ruby -e", "require 'fileutils'; FileUtils.rm_rf('a')", "delete-tree! a"),
        ("ruby -e", "`rm a`", "delete a"),
        ("perl -e", 'unlink "a"', "delete! a"),
        ("perl -e", 'unlink glob("a/*")', "delete! a/*"),
        ("php -r", "system('rm a');", "delete a"),
        ("lua -e", "os.execute('rm a')", "delete a"),
        ("node -e", "rm -rf a", "delete-tree! a"),
    ],
)
def test_what_other_languages_do_in_plain_words(program: str, code: str, expected: str) -> None:
    assert expected in {said(effect) for effect in effects([*program.split(), code])}


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("node -e", "eval('x')"),
        ("node -e", "const m = 'child_' + 'process'; require(m)"),
        ("node -e", "require('child_process')['exec' + 'Sync']('x')"),
        ("node -e", "fetch('http://h')"),
        ("node -e", "/'/.test(1); require('fs').rmSync(x); /'/"),
        ("ruby -e", "%x(rm a)"),
        ("perl -e", 'print "@{[system q(x)]}"'),
        ("perl -e", '$x =~ m#a#; system("x")'),
        ("perl -e", "print 1 if /'/; system(\"x\"); print /'/"),
        ("php -r", "$f = 'system'; $f('x');"),
        ("lua -e", "io.open('a', 'w')"),
        ("julia -e", "1"),
    ],
)
def test_code_that_hides_what_it_does_cannot_be_read(program: str, code: str) -> None:
    found = {said(effect) for effect in effects([*program.split(), code], deep=False)}
    assert any(text.startswith(("evaluate", "delete")) for text in found)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("psql -c 'select 1'", {"get localhost"}),
        ("psql -h h -c 'DROP TABLE x'", {"system database!", "get h"}),
        ("psql -c 'insert into x values (1)'", {"system database", "get localhost"}),
        ("psql -c 'delete from x'", {"system database!", "get localhost"}),
        ("psql -c \"select 'drop table x'\"", {"get localhost"}),
        ("psql -c 'copy x to program y'", {"unknown", "system database", "get localhost"}),
        ("psql -f a.sql", {"read a.sql", "system database", "get localhost"}),
        ("mysql -e 'show tables'", {"get localhost"}),
        ("sqlite3 a.db 'select 1'", {"read a.db"}),
        ("sqlite3 a.db 'update x set y=1 where z=2'", {"edit a.db"}),
        ("sqlite3 a.db '.shell rm a'", {"delete a", "read a.db"}),
        ("redis-cli get x", {"get localhost"}),
        ("redis-cli FLUSHALL", {"system database!"}),
        ("redis-cli set a b", {"system database"}),
        ("mongosh --eval 'db.x.find()'", {"get localhost"}),
        ("mongosh --eval 'db.dropDatabase()'", {"system database!", "get localhost"}),
        ("dropdb x", {"system database!"}),
        ("pg_dump -f o x", {"truncate o", "get localhost"}),
    ],
)
def test_statements_ask_change_or_destroy(command: str, expected: set[str]) -> None:
    assert told(command) == expected
