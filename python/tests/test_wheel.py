"""What pip has installed: for which Pythons it is, how large, and what it needs of the machine."""

import importlib.metadata
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import pantala as pn

MEGABYTE = 1e6
# What every Linux has that runs programs in C++.
OF_THE_MACHINE = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so\.\d+|ld-linux.*\.so\.\d+")


@pytest.fixture
def installed():
    """The files of the package, where it is an installed one."""
    folder = Path(pn.__file__).parent
    try:
        files = importlib.metadata.files("pantala") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    found = [Path(file.locate()) for file in files if "__pycache__" not in str(file)]
    if folder / "__init__.py" not in found:
        pytest.skip(f"the package in {folder} was not installed by pip")
    return found


def libraries(files):
    return [file for file in files if ".so" in file.name]


def test_the_tag_is_that_of_the_stable_abi(installed):
    (file,) = [file for file in installed if file.name == "WHEEL"]
    tag = re.search(r"Tag: (\S+)", file.read_text())[1]
    (module,) = [file for file in installed if file.name.startswith("_pantala") and ".so" in file.name]
    if sys.version_info >= (3, 12):
        assert tag.startswith("cp312-abi3-linux") and module.name == "_pantala.abi3.so"
    else:
        version = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        assert tag.startswith(f"{version}-{version}-linux") and sys.implementation.cache_tag in module.name


def test_the_file_is_small(installed):
    packed = sum(len(zlib.compress(file.read_bytes(), 6)) for file in installed)
    assert 5 * MEGABYTE < packed < 60 * MEGABYTE


def needed(file):
    told = subprocess.run(["readelf", "-d", str(file)], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[([^\]]+)\]", told)), re.findall(r"\((?:RPATH|RUNPATH)\).*\[([^\]]+)\]", told)


def test_it_needs_only_what_it_brings_and_the_runtime_of_cpp(installed):
    brought = {file.name for file in libraries(installed)}
    missing = {}
    for file in libraries(installed):
        names, paths = needed(file)
        others = {name for name in names if name not in brought and not OF_THE_MACHINE.fullmatch(name)}
        if others:
            missing[file.name] = others
        assert all(path.startswith("$ORIGIN") for path in paths), f"{file.name} looks in {paths}"
    assert not missing
    assert not [name for name in brought if "LLVM" in name], "LLVM's archives are linked in"


def test_it_brings_nothing_that_it_does_not_need(installed):
    brought = {file.name for file in libraries(installed)}
    wanted = set().union(*(needed(file)[0] for file in libraries(installed)))
    assert not {name for name in brought if not name.startswith("_pantala")} - wanted


def test_its_types_and_licence_go_with_it(installed):
    names = {file.name for file in installed}
    assert {"py.typed", "_pantala.pyi", "_ops.py", "LICENSE"} <= names
