"""The directories of the project, and the packages that its scripts install."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"))


def pip(directory, *packages):
    """Installs the newest allowed versions of packages into a virtual environment; returns the directory of its programs."""
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    subprocess.run([directory / "bin/pip", "install", "--quiet", "--upgrade", *packages], check=True)
    return directory / "bin"


def npm(directory, *packages):
    """Installs packages below a directory, into `node_modules`. Options may be among them."""
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", directory, *packages], check=True)
