"""The command ``forebay``, also ``python -m forebay``."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence

from .. import __version__
from . import bench, check, demo, doctor, stats
from .output import fail, settle
from .usage import UsageError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a subcommand; returns the exit status, 0 only on success."""
    parser = argparse.ArgumentParser(prog="forebay", description="Feeds PyTorch with images.")
    parser.add_argument("--version", action="version", version=f"forebay {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for module in (demo, doctor, bench, stats, check):
        name = module.__name__.rpartition(".")[2]
        purpose = (module.__doc__ or "").splitlines()[0]
        module.add_arguments(commands.add_parser(name, help=purpose, description=purpose))
    arguments = parser.parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        settle()
        return status
    except KeyboardInterrupt:
        return fail("interrupted", status=130)
    except UsageError as error:
        return fail(f"{arguments.command}: {error}", status=2)
    except (OSError, ValueError, ImportError, NotImplementedError, RuntimeError) as error:
        with contextlib.suppress(OSError):  # which may be why
            settle()
        return fail(f"{arguments.command}: {error}")
