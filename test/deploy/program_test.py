#!/usr/bin/env python3
"""The program that is shipped: what a mistake in memory could be made into is closed, and its symbols lie beside it.

    program_test.py BERTH      of the Release configuration, without sanitizers
"""
import os
import struct
import sys
import unittest

BERTH = ""
MOST_BYTES = 16_000_000

ET_DYN = 3
PT_LOAD, PT_GNU_STACK, PT_GNU_RELRO = 1, 0x6474E551, 0x6474E552
DT_RPATH, DT_TEXTREL, DT_RUNPATH = 15, 22, 29
DT_FLAGS, DT_FLAGS_1 = 30, 0x6FFFFFFB
DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 0x8, 0x1, 0x08000000
PF_X, PF_W = 1, 2


class Elf:
    """64-bit, little-endian: x86_64 and aarch64."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.bytes = f.read()
        assert self.bytes[:6] == b"\x7fELF\x02\x01", f"{path} is no 64-bit ELF file"
        (self.type, _, _, _, segments, sections, _, _, segment_size, segment_count, section_size, section_count,
         names) = struct.unpack_from("<HHIQQQIHHHHHH", self.bytes, 16)
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.bytes, segments + i * segment_size)
                         for i in range(segment_count)]
        headers = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, sections + i * section_size)
                   for i in range(section_count)]
        strings = headers[names][4]
        self.sections = {self.string(strings + h[0]): (h[4], h[5]) for h in headers}

    def string(self, at):
        return self.bytes[at:self.bytes.index(b"\0", at)].decode()

    def flags(self, kind):
        return [segment[1] for segment in self.segments if segment[0] == kind]

    def dynamic(self):
        at, size = self.sections[".dynamic"]
        pairs = struct.iter_unpack("<QQ", self.bytes[at:at + size])
        return {tag: value for tag, value in pairs if tag}

    def imports(self):
        at, size = self.sections[".dynsym"]
        strings, _ = self.sections[".dynstr"]
        symbols = struct.iter_unpack("<IBBHQQ", self.bytes[at:at + size])
        return {self.string(strings + name) for name, _, _, section, _, _ in symbols if section == 0 and name}


class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.elf = Elf(BERTH)

    def test_is_loaded_anywhere(self):
        self.assertEqual(self.elf.type, ET_DYN)
        self.assertTrue(self.elf.dynamic().get(DT_FLAGS_1, 0) & DF_1_PIE, "a program, not a library")
        self.assertNotIn(DT_TEXTREL, self.elf.dynamic(), "code is not written to")

    def test_nothing_called_through_can_be_written(self):
        dynamic = self.elf.dynamic()
        self.assertTrue(dynamic.get(DT_FLAGS, 0) & DF_BIND_NOW or dynamic.get(DT_FLAGS_1, 0) & DF_1_NOW)
        self.assertEqual(len(self.elf.flags(PT_GNU_RELRO)), 1)
        self.assertEqual([f & PF_X for f in self.elf.flags(PT_GNU_STACK)], [0], "the stack holds no code")
        both = [s for s in self.elf.segments if s[0] == PT_LOAD and s[1] & PF_W and s[1] & PF_X]
        self.assertEqual(both, [], "nothing is both written to and run")

    def test_frames_and_calls_are_guarded(self):
        imports = self.elf.imports()
        self.assertIn("__stack_chk_fail", imports)
        self.assertTrue([name for name in imports if name.startswith("__") and name.endswith("_chk")], "FORTIFY")

    def test_libraries_are_the_systems(self):
        self.assertFalse({DT_RPATH, DT_RUNPATH} & set(self.elf.dynamic()))

    def test_symbols_lie_beside_it(self):
        self.assertNotIn(".symtab", self.elf.sections)
        self.assertNotIn(".debug_info", self.elf.sections)
        at, _ = self.elf.sections[".gnu_debuglink"]
        beside = os.path.join(os.path.dirname(BERTH), self.elf.string(at))
        self.assertIn(".debug_info", Elf(beside).sections)
        size = len(self.elf.bytes)
        print(f"{size / 1e6:.1f} MB, symbols {os.path.getsize(beside) / 1e6:.1f} MB", file=sys.stderr)
        self.assertLess(size, MOST_BYTES)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BERTH = os.path.realpath(sys.argv.pop(1))
    unittest.main()
