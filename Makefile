# make            build all programs
# make install    build and install programs, tools, manual pages, completions and the schema under $(DESTDIR)$(PREFIX);
#                 EXACT=1 adds vocabularies of tokenizers to claw-estimate (45 MB)
# make uninstall  remove them
# make demo       show an overflow and how it is handled, without a key or a network
# make check      run all checks, except the longer ones of CI
# make check-full run long tests that make check does not run
# make fuzz       fuzz all targets; FUZZ=scan selects one, SECONDS=60 runs each for a minute
# make recall     measure which facts survive a summary
# make llama      hold sessions with the real server of llama.cpp, which is installed from a package; 30 s
# make bench      measure speed, memory and size, beside other programs
# make pictures   draw the pictures in docs/pictures; REAL=DIR also that of Claude Code, which is installed there
# make html       convert the manual pages to HTML, in target/html
# make install-files  install everything except the programs that cargo builds, after cargo install
# make completions  write the completions of bash, zsh and fish from the definitions of the programs
# make source     make an archive that builds without a network; deb and formula make other packages
# make tarball    make an archive of static programs; MACHINE=aarch64 makes that of another processor
# make shells     run the tests of the scripts with other shells and the tools of busybox
# make portable   check that the code compiles for other systems
# make systems    run the checks on other systems: macOS, FreeBSD, Spark, ARM and a minimal Debian with make check; 30 minutes
# make audit      check licences, sources, duplicates and advisories of all dependencies
# make release    check that everything is ready for a release, and make all packages, without publishing them

PREFIX = /usr/local
DESTDIR =
EXACT =
CARGO = cargo
INSTALL = install
SECONDS = 600
MACHINE =

TARGET = $${CARGO_TARGET_DIR:-target}
RELEASE = $(TARGET)/release
CARGO_BUILD = $(CARGO) build --release --locked $(EXACT:%=--features exact) && rm -f "$(RELEASE)"/built* && : >"$(BUILT)"
BUILD = $(CARGO_BUILD)
BUILT = $(RELEASE)/built$(EXACT:%=-exact)
# Whoever does not own this clone, such as root in that of a user, leaves no files in it: install what the owner has built,
# or if that is missing or older than the sources, build in another directory.
ifeq ($(CARGO_TARGET_DIR)$(shell test -O . && echo owner),)
ifeq ($(shell test -e "$(BUILT)" || echo missing; find src Cargo.toml Cargo.lock -newer "$(BUILT)" 2>&1),)
BUILD = @echo "using the programs that the owner of this clone has built"
else
export CARGO_TARGET_DIR := $(HOME)/.cache/clawutils
BUILD = @echo "this clone belongs to somebody else; building in $(CARGO_TARGET_DIR)"; $(CARGO_BUILD)
endif
endif
BINDIR = $(DESTDIR)$(PREFIX)/bin
MANDIR = $(DESTDIR)$(PREFIX)/share/man
DATADIR = $(DESTDIR)$(PREFIX)/share/clawutils
TOOLDIR = $(DESTDIR)$(PREFIX)/libexec/clawutils/tools
BASHDIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHDIR = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISHDIR = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

PROGRAMS = claw-append claw-rebuild claw-estimate claw-truncate claw-compact claw-checkpoint claw-call claw-check \
	claw-exec claw-tool claw-session claw-show claw-config claw-replay claw-index
SCRIPTS = claw-turn claw-chat claw-retry claw-replay-parallel
TOOLS = read_file list_directory get_current_time

build:
	$(BUILD)

demo: build
	@PATH="$$(cd "$(RELEASE)" && pwd):$(CURDIR)/scripts:$$PATH" sh scripts/dev/demo "$(TARGET)/demo"

check:
	sh scripts/dev/check

install: build install-files
	for program in $(PROGRAMS); do $(INSTALL) -m 755 "$(RELEASE)/$$program" "$(BINDIR)"; done

install-files:
	$(INSTALL) -d "$(BINDIR)" "$(MANDIR)/man1" "$(MANDIR)/man5" "$(MANDIR)/man7" "$(DATADIR)" "$(TOOLDIR)"
	$(INSTALL) -d "$(BASHDIR)" "$(ZSHDIR)" "$(FISHDIR)"
	for script in $(SCRIPTS); do $(INSTALL) -m 755 "scripts/$$script" "$(BINDIR)"; done
	$(INSTALL) -m 644 man/*.1 "$(MANDIR)/man1"
	$(INSTALL) -m 644 man/*.5 "$(MANDIR)/man5"
	$(INSTALL) -m 644 man/*.7 "$(MANDIR)/man7"
	$(INSTALL) -m 644 schema/claw-record.schema.json "$(DATADIR)"
	for tool in $(TOOLS); do $(INSTALL) -m 755 "tools/$$tool" "$(TOOLDIR)"; done
	for tool in $(TOOLS); do $(INSTALL) -m 644 "tools/$$tool.json" "$(TOOLDIR)"; done
	$(INSTALL) -m 644 completions/bash/* "$(BASHDIR)"
	$(INSTALL) -m 644 completions/zsh/* "$(ZSHDIR)"
	$(INSTALL) -m 644 completions/fish/* "$(FISHDIR)"

uninstall:
	for name in $(PROGRAMS) $(SCRIPTS); do rm -f "$(BINDIR)/$$name" "$(MANDIR)/man1/$$name.1"; done
	rm -f "$(MANDIR)/man5/claw-record.5"
	for name in claw claw-cookbook claw-dialects claw-guard claw-tool; do rm -f "$(MANDIR)/man7/$$name.7"; done
	rm -f "$(DATADIR)/claw-record.schema.json"
	for tool in $(TOOLS); do rm -f "$(TOOLDIR)/$$tool" "$(TOOLDIR)/$$tool.json"; done
	cd completions/bash && for file in *; do rm -f "$(BASHDIR)/$$file"; done
	cd completions/zsh && for file in *; do rm -f "$(ZSHDIR)/$$file"; done
	cd completions/fish && for file in *; do rm -f "$(FISHDIR)/$$file"; done

completions:
	$(CARGO) build --quiet --locked --features completions
	PATH="$(TARGET)/debug:$$PATH" sh scripts/dev/completions

source tarball deb formula:
	MACHINE="$(MACHINE)" sh scripts/dev/package $@

shells:
	$(CARGO) test --locked --profile dev --test cli --no-run
	sh scripts/dev/shells

portable:
	sh scripts/dev/portable

systems:
	sh scripts/dev/systems

audit:
	$(CARGO) deny --all-features check

release:
	sh scripts/dev/release

recall:
	$(CARGO) build --quiet --locked
	PATH="$(TARGET)/debug:scripts:$$PATH" sh scripts/dev/recall
	PATH="$(TARGET)/debug:scripts:$$PATH" sh scripts/dev/recall --held-out

llama: build
	test -x "$(TARGET)/llama/bin/python" || python3 -m venv "$(TARGET)/llama"
	"$(TARGET)/llama/bin/pip" install -q -r scripts/dev/llama.txt
	"$(TARGET)/llama/bin/python" scripts/dev/llama

bench:
	scripts/dev/bench

pictures:
	$(CARGO) build --quiet --locked
	PATH="$(TARGET)/debug:scripts:$$PATH" scripts/dev/pictures $(REAL)

html:
	sh scripts/dev/html "$(TARGET)/html"

fuzz:
	scripts/dev/fuzz --seconds $(SECONDS) $(FUZZ)

check-full:
	CLAW_TEST_FULL=1 $(CARGO) test --locked --profile dev --test cli
	$(CARGO) test --locked --profile dev --features exact --lib exact
	CLAW_TEST_FULL=1 $(CARGO) test --locked --release --example property mutant -- --nocapture
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps

.PHONY: build demo check recall llama bench pictures html fuzz install install-files uninstall check-full completions source tarball \
	deb formula shells portable systems audit release
