# make            build all programs in release mode
# make demo       show an overflow and how it is handled, without a key or a network
# make check      run everything that CI runs
# make check-full run long tests that make check does not run
# make static     build the programs that make install copies, statically linked where possible
# make fuzz       fuzz all targets; FUZZ=scan selects one, SECONDS=60 runs each for a minute
# make recall     measure which facts survive a summary
# make bench      measure speed, memory and size, beside other programs
# make pictures   draw the pictures in docs/pictures
# make html       convert the manual pages to HTML, in target/html
# make install    install programs, tools, manual pages and the schema under $(DESTDIR)$(PREFIX)
# make uninstall  remove them

PREFIX = /usr/local
DESTDIR =
CARGO = cargo
INSTALL = install
SECONDS = 600

TARGET = $${CARGO_TARGET_DIR:-target}
BINDIR = $(DESTDIR)$(PREFIX)/bin
MANDIR = $(DESTDIR)$(PREFIX)/share/man
DATADIR = $(DESTDIR)$(PREFIX)/share/clawutils
TOOLDIR = $(DESTDIR)$(PREFIX)/libexec/clawutils/tools

PROGRAMS = claw-append claw-rebuild claw-estimate claw-truncate claw-compact claw-checkpoint claw-call claw-check \
	claw-exec claw-tool claw-session claw-show claw-config claw-replay claw-index
SCRIPTS = claw-turn claw-chat claw-retry claw-replay-parallel
TOOLS = read_file list_directory get_current_time

build:
	$(CARGO) build --release --locked

demo:
	$(CARGO) build --quiet --locked
	PATH="$(TARGET)/debug:scripts:$$PATH" sh scripts/dev/demo "$(TARGET)/demo"

check:
	sh scripts/dev/check

static:
	CARGO="$(CARGO)" sh scripts/dev/dist

install: static
	$(INSTALL) -d "$(BINDIR)" "$(MANDIR)/man1" "$(MANDIR)/man5" "$(MANDIR)/man7" "$(DATADIR)" "$(TOOLDIR)"
	for program in $(PROGRAMS); do $(INSTALL) -m 755 "$(TARGET)/dist/$$program" "$(BINDIR)"; done
	for script in $(SCRIPTS); do $(INSTALL) -m 755 "scripts/$$script" "$(BINDIR)"; done
	$(INSTALL) -m 644 man/*.1 "$(MANDIR)/man1"
	$(INSTALL) -m 644 man/*.5 "$(MANDIR)/man5"
	$(INSTALL) -m 644 man/*.7 "$(MANDIR)/man7"
	$(INSTALL) -m 644 schema/claw-record.schema.json "$(DATADIR)"
	for tool in $(TOOLS); do $(INSTALL) -m 755 "tools/$$tool" "$(TOOLDIR)"; done
	for tool in $(TOOLS); do $(INSTALL) -m 644 "tools/$$tool.json" "$(TOOLDIR)"; done

uninstall:
	for name in $(PROGRAMS) $(SCRIPTS); do rm -f "$(BINDIR)/$$name" "$(MANDIR)/man1/$$name.1"; done
	rm -f "$(MANDIR)/man5/claw-record.5"
	for name in claw claw-cookbook claw-dialects claw-guard claw-tool; do rm -f "$(MANDIR)/man7/$$name.7"; done
	rm -f "$(DATADIR)/claw-record.schema.json"
	for tool in $(TOOLS); do rm -f "$(TOOLDIR)/$$tool" "$(TOOLDIR)/$$tool.json"; done

recall:
	$(CARGO) build --quiet --locked
	PATH="$(TARGET)/debug:scripts:$$PATH" sh scripts/dev/recall
	PATH="$(TARGET)/debug:scripts:$$PATH" sh scripts/dev/recall --held-out

bench:
	scripts/dev/bench

pictures:
	$(CARGO) build --quiet --locked
	PATH="$(TARGET)/debug:scripts:$$PATH" scripts/dev/pictures

html:
	sh scripts/dev/html "$(TARGET)/html"

fuzz:
	scripts/dev/fuzz --seconds $(SECONDS) $(FUZZ)

check-full:
	CLAW_TEST_FULL=1 $(CARGO) test --locked --profile dev --test cli
	CLAW_TEST_FULL=1 $(CARGO) test --locked --release --example property mutant -- --nocapture
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps

.PHONY: build static demo check recall bench pictures html fuzz install uninstall check-full
