"""The filter is run here by a small interpreter of classic BPF, for both architectures."""

import struct

import pytest

from workers.sandbox.seccomp import _DENIED, UnknownArchitecture, filter_program

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
X86_64, AARCH64 = 0xC000003E, 0xC00000B7


def verdict(program: bytes, arch: int, nr: int, *args: int) -> int:
    return walked(program, arch, nr, *args)[0]


def steps(program: bytes, arch: int, nr: int) -> int:
    return walked(program, arch, nr)[1]


def walked(program: bytes, arch: int, nr: int, *args: int) -> tuple[int, int]:
    """(the answer, instructions until it)"""
    data = struct.pack("<IIQ6Q", nr, arch, 0, *(*args, *[0] * (6 - len(args))))
    code = list(struct.iter_unpack("<HBBI", program))
    accumulator, at, count = 0, 0, 0
    while True:
        count += 1
        operation, if_true, if_false, k = code[at]
        at += 1
        if operation == 0x20:
            accumulator = struct.unpack_from("<I", data, k)[0]
        elif operation == 0x06:
            return k, count
        else:
            held = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}[operation]
            at += if_true if held else if_false


@pytest.mark.parametrize(
    ("machine", "arch", "column", "clone", "socket", "ioctl", "prlimit"),
    [("x86_64", X86_64, 0, 56, 41, 16, 302), ("aarch64", AARCH64, 1, 220, 198, 29, 261)],
)
def test_every_denied_call_is_refused_and_arguments_are_looked_at(
    machine: str, arch: int, column: int, clone: int, socket: int, ioctl: int, prlimit: int
) -> None:
    program = filter_program(machine)

    denied = [numbers[column] for numbers in _DENIED.values() if numbers[column] is not None]

    assert {verdict(program, arch, number) for number in denied} == {EPERM}
    assert verdict(program, arch, clone, 17) == ALLOW
    assert verdict(program, arch, clone, 0x10000000 | 17) == EPERM
    assert verdict(program, arch, 435) == ENOSYS
    assert verdict(program, arch, socket, 1) == ALLOW
    assert {verdict(program, arch, socket, family) for family in (2, 10, 16, 40)} == {EPERM}
    assert verdict(program, arch, ioctl, 0, 0x5401) == ALLOW
    assert verdict(program, arch, ioctl, 0, 0x5412) == EPERM
    assert verdict(program, arch, ioctl, 0, 0xDEAD_0000_5412) == EPERM
    assert verdict(program, arch, prlimit, 0, 7) == ALLOW
    assert verdict(program, arch, prlimit, 1, 7) == EPERM
    assert verdict(program, arch, 500) == ENOSYS


@pytest.mark.parametrize(("machine", "arch", "column"), [("x86_64", X86_64, 0), ("aarch64", AARCH64, 1)])
def test_no_call_is_refused_that_is_not_named(machine: str, arch: int, column: int) -> None:
    program = filter_program(machine)
    named = {numbers[column] for numbers in _DENIED.values()}
    looked_at = {435, *((56, 41, 53, 16, 302) if column == 0 else (220, 198, 199, 29, 261))}

    answers = {number: verdict(program, arch, number) for number in range(463)}

    refused = {number for number, answer in answers.items() if answer != ALLOW}
    assert refused - looked_at == named - {None}


def test_a_call_is_found_in_few_steps() -> None:
    """The kernel walks the filter for each call there is, whenever one is installed."""
    program = filter_program("x86_64")

    assert max(steps(program, X86_64, number) for number in range(463)) <= 20


def test_foreign_architectures_and_x32_kill() -> None:
    program = filter_program("x86_64")

    assert verdict(program, 0x40000003, 1) == KILL
    assert verdict(program, X86_64, 0x40000000 | 39) == KILL
    assert verdict(filter_program("aarch64"), X86_64, 0) == KILL


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(UnknownArchitecture, match="riscv64"):
        filter_program("riscv64")
