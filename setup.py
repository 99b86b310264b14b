"""Builds the core with cargo and the torch extension around it.

The extension uses LibTorch's stable ABI and no Python.h, so one wheel (py3-none-<platform>) serves
every CPython from 3.10 and every torch from 2.11.
"""

import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from torch.utils.cpp_extension import BuildExtension, CppExtension

ROOT = Path(__file__).parent.resolve()
TARGET = ROOT / "target"
STATIC_LIBRARY = TARGET / "release" / "libforebay_bridge.a"


class BuildNative(BuildExtension):
    """Builds the static library before the extension that links it."""

    def run(self) -> None:
        command = ["cargo", "build", "--release", "--locked", "-p", "forebay-bridge"]
        try:
            subprocess.run([*command, "--target-dir", str(TARGET)], cwd=ROOT, check=True)
        except FileNotFoundError as error:
            message = "building forebay needs a Rust toolchain (cargo, rustc >= 1.89) on the PATH"
            raise SystemExit(message) from error
        super().run()


class PlatformWheel(bdist_wheel):
    """Tags the wheel for any Python 3 on this platform."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


extension = CppExtension(
    name="forebay._forebay",
    sources=sorted(str(path.relative_to(ROOT)) for path in (ROOT / "torch_ext").glob("*.cpp")),
    include_dirs=[str(ROOT / "cpp" / "include"), str(TARGET / "cxxbridge")],
    extra_objects=[str(STATIC_LIBRARY)],
    depends=[str(STATIC_LIBRARY)],
    extra_compile_args=[
        "-std=c++20",
        "-O2",
        "-g0",
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
        # torch 2.11 is the floor: nothing newer than its stable ABI may be used.
        "-DTORCH_TARGET_VERSION=0x020b000000000000",
    ],
    # Other packages in the process bring their own libjpeg: ours stays to itself.
    extra_link_args=["-Wl,--exclude-libs,ALL", "-Wl,--gc-sections", "-Wl,-z,defs", "-ldl", "-lm"],
    py_limited_api=True,
)

setup(
    ext_modules=[extension],
    cmdclass={
        "build_ext": BuildNative.with_options(no_python_abi_suffix=True, use_ninja=False),
        "bdist_wheel": PlatformWheel,
    },
)
