"""The real programs that scripts/dev/repair, carry, ccusage and dialects run: installed with npm or pip, each with a home and a provider of its own.

They run without any network but loopback, with an empty environment. Needs Linux, and root or user namespaces.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from places import npm, pip
from png import png
from strict_provider import Provider

# Newer versions of Claude Code repair much of a session themselves, so an old one is tried, too.
PACKAGES = {
    "claude-code": "@anthropic-ai/claude-code", "claude-code-2.0": "@anthropic-ai/claude-code@2.0.76",
    "codex": "@openai/codex", "copilot": "@github/copilot", "gemini-cli": "@google/gemini-cli", "llm": "llm", "openclaw": "openclaw",
    "opencode": "opencode-ai", "pi": "@earendil-works/pi-coding-agent",
}
# The programs that pip installs.
OF_PIP = {"llm"}
# The programs that keep their sessions in a database, and its place below the home.
DATABASES = {
    "llm": "llm/logs.db", "openclaw": ".openclaw/agents/main/agent/openclaw-agent.sqlite",
    "opencode": ".local/share/opencode/opencode.db",
}
NAMES = {
    "claude-code": "Claude Code", "claude-code-2.0": "Claude Code", "codex": "Codex", "copilot": "Copilot CLI",
    "gemini-cli": "Gemini CLI", "llm": "llm", "openclaw": "OpenClaw", "opencode": "opencode", "pi": "pi",
}
# The name of each program in other places, such as ccusage, and its sessions below the home.
PLACES = {
    "claude-code": ("claude", ".claude/projects"), "codex": ("codex", ".codex/sessions"),
    "copilot": ("copilot", ".copilot/session-state"), "gemini-cli": ("gemini", ".gemini/tmp"),
    "opencode": ("opencode", DATABASES["opencode"]), "pi": ("pi", ".pi/agent/sessions"),
}
NODE = "node@22"
# OpenClaw needs a newer one.
NEWER_NODE = "node@24"
FIRST, SECOND, LAST = "Read the two files.", "Say more.", "Go on."
SAID = [FIRST, "Both files are read.", SECOND, "It is said."]
SECONDS = 90
# The session of OpenClaw, which goes on with the one that has the id.
OPENCLAW = "11111111-2222-4333-8444-555555555555"


def install(root, keys):
    npm(root / "node", NODE)
    for key in keys:
        if key in OF_PIP:
            pip(root / key, PACKAGES[key])
            continue
        # Without a version, npm takes one that its own Node.js can run.
        package = PACKAGES[key]
        npm(root / key, "--ignore-scripts", package if "@" in package[1:] else f"{package}@latest")
        if key == "openclaw":
            npm(root / key / "node", NEWER_NODE)


def begin(usage, keys, install_more=None):
    """Returns the directory and the further arguments of a script; without a directory, prints how it is used. With
    --install, first installs the programs that the arguments name, or those with these keys. Then seals the script off."""
    root, *others = [it for it in sys.argv[1:] if not it.startswith("--")] or sys.exit(usage)
    root = pathlib.Path(root).resolve()
    if "--install" in sys.argv:
        install(root, [it for it in others if it in PACKAGES] or keys)
        if install_more:
            install_more(root)
    seal_off()
    return root, others


def seal_off():
    """Starts this script again with a network that has nothing but loopback and mounts of its own, without --install."""
    if "REAL_PROGRAMS_SEALED" in os.environ:
        return
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    os.environ["REAL_PROGRAMS_SEALED"] = "1"
    own = [it for it in sys.argv if it != "--install"]
    again = 'ip link set lo up && exec "$@"'
    os.execvp("unshare", ["unshare", *user, "--net", "--mount", "sh", "-c", again, "sh", sys.executable, *own])


def imported(database, work):
    """Returns the session of clawutils that a database becomes."""
    command = ["claw-session", "--workspace", work / "workspace"]
    run = lambda *more: subprocess.run([*command, *more], capture_output=True, text=True, check=True).stdout.strip()
    return pathlib.Path(run("path", run("import", database)))


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


class Program:
    """A program with a home of its own, in the work directory `place`."""

    def __init__(self, key, root, place=None):
        self.name, self.key, self.root = key, key.removesuffix("-2.0"), root
        self.work = root / "work" / (place or key).replace(".", "-")
        shutil.rmtree(self.work, ignore_errors=True)
        self.toy, self.home = self.work / "toy", self.work / "home"
        self.toy.mkdir(parents=True)
        self.home.mkdir()
        (self.toy / "a.txt").write_text("alpha\n")
        (self.toy / "b.txt").write_text("beta\n")
        (self.toy / "p.png").write_bytes(png(20, 20))
        second = "b.txt" if key in ("codex", "llm") else "p.png"
        self.provider = Provider([str(self.toy / "a.txt"), str(self.toy / second)])
        self.configure()

    def put(self, path, content):
        """Writes a file below the home: a text, or an object as JSON."""
        path = self.home / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    def configure(self):
        address = self.provider.address
        if self.key == "codex":
            self.put(
                ".codex/config.toml",
                'model="gpt-5-codex"\nmodel_provider="toy"\n[model_providers.toy]\nname="toy"\n'
                f'base_url="{address}/v1"\nwire_api="responses"\nenv_key="OPENAI_API_KEY"\n'
            )
        if self.key == "gemini-cli":
            auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
            self.put(".gemini/settings.json", auth)
        if self.key == "llm":
            self.put(
                "llm/extra-openai-models.yaml",
                f"- model_id: toy\n  model_name: toy\n  api_base: {address}/v1\n  responses: true\n  supports_tools: true\n  vision: true\n"
            )
            (self.toy / "tools.py").write_text(
                'import subprocess\ndef shell_command(command: str) -> str:\n    "Run a command."\n    return subprocess.getoutput(command)\n'
            )
        if self.key == "openclaw":
            model = {"id": "claude-sonnet-4-5", "name": "toy", "reasoning": True, "input": ["text", "image"], "contextWindow": 200000, "maxTokens": 8000}
            toy = {"baseUrl": address, "apiKey": "x", "api": "anthropic-messages", "models": [model]}
            agents = {"defaults": {"workspace": str(self.toy), "model": {"primary": "toy/claude-sonnet-4-5"}, "skipBootstrap": True}}
            self.put(".openclaw/openclaw.json", {"agents": agents, "models": {"providers": {"toy": toy}}})
        if self.key == "opencode":
            options = {"baseURL": f"{address}/v1", "apiKey": "x"}
            toy = {"npm": "@ai-sdk/anthropic", "name": "toy", "options": options, "models": {"claude-sonnet-4-5": {"name": "toy"}}}
            own = {"provider": {"toy": toy}, "model": "toy/claude-sonnet-4-5", "autoupdate": False, "share": "disabled"}
            self.put(".config/opencode/opencode.json", own)
        if self.key == "pi":
            self.put(".pi/agent/models.json", {"providers": {"anthropic": {"baseUrl": address, "apiKey": "x"}}})

    def command(self, prompt, session):
        """Returns the command that begins a session, or goes on with one: a path, or "last" for the newest that is listed."""
        is_last = session == "last"
        at = self.root / self.name / "node_modules"
        if self.key == "claude-code":
            resume = ["--continue"] if is_last else ["--resume", session.stem] if session else []
            binary = next((at / "@anthropic-ai").glob("claude-code-linux-*/claude"), at / ".bin/claude")
            return [binary, "-p", "--model", "claude-sonnet-4-5", "--allowedTools", "Read", *resume, "--", prompt]
        if self.key == "codex":
            binary = next((at / "@openai").glob("codex-linux-*/**/bin/codex"), None)
            binary = binary or next(it for it in (at / "@openai").glob("codex-linux-*/**/codex") if it.is_file())
            own = [binary, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
            which = "--last" if is_last else session.stem[-36:] if session else None
            return [*own, "resume", which, prompt] if which else [*own, "-i", "p.png", "--", prompt]
        if self.key == "copilot":
            resume = ["--continue"] if is_last else [f"--resume={self.id(session)}"] if session else []
            binary = next((at / "@github").glob("copilot-linux-*/copilot"))
            return [binary, "--allow-all-tools", "--allow-all-paths", "--no-auto-update", *resume, "-p", prompt]
        if self.key == "gemini-cli":
            resume = ["--resume", "latest" if is_last else str(self.id(session))] if session else []
            node = self.root / "node/node_modules/node/bin/node"
            binary = at / "@google/gemini-cli/bundle/gemini.js"
            return [node, binary, "--skip-trust", "--approval-mode", "yolo", "-m", "gemini-2.5-pro", *resume, "-p", prompt]
        if self.key == "llm":
            own = ["--functions", "tools.py", "-a", "p.png", "-m", "toy"]
            return [self.root / self.name / "bin/llm", prompt, *(["--continue"] if session else own)]
        if self.key == "openclaw":
            node = self.root / self.name / "node/node_modules/node/bin/node"
            own = [node, at / "openclaw/openclaw.mjs", "agent", "--local", "--agent", "main", "--session-id", OPENCLAW]
            return [*own, "--thinking", "low", "--message", prompt]
        if self.key == "opencode":
            resume = ["--continue"] if is_last else ["--session", self.id(session)] if session else []
            return [self.opencode(), "run", "-m", "toy/claude-sonnet-4-5", *resume, prompt]
        own = [at / ".bin/pi", "--provider", "anthropic", "--model", "claude-sonnet-4-5"]
        resume = ["--continue"] if is_last else ["--session", session] if session else []
        return [*own, *resume, "-p", prompt]

    def fork(self, prompt, session):
        """Returns the command that begins a copy of a session, or None if the program makes no copies."""
        command = self.command(prompt, session)
        if self.key == "codex":
            return ["fork" if part == "resume" else part for part in command]
        if self.key == "pi":
            return ["--fork" if part == "--session" else part for part in command]
        option = {"claude-code": "--fork-session", "opencode": "--fork"}.get(self.key)
        end = command.index("--") if "--" in command else -1
        return [*command[:end], option, *command[end:]] if option else None

    def opencode(self):
        return next((self.root / self.name / "node_modules").glob("opencode-linux-*[0-9]/bin/opencode"))

    def environment(self):
        node = self.root / "node/node_modules/node/bin"
        return {
            "PATH": f"{node}:/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8", "TZ": "UTC", "IS_SANDBOX": "1",
            "ANTHROPIC_BASE_URL": self.provider.address, "ANTHROPIC_API_KEY": "x",
            "OPENAI_API_KEY": "x", "GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": self.provider.address,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
            "COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_TYPE": "anthropic", "COPILOT_PROVIDER_API_KEY": "x",
            "COPILOT_PROVIDER_BASE_URL": self.provider.address, "COPILOT_MODEL": "claude-sonnet-4.5",
            "LLM_USER_PATH": str(self.home / "llm"),
            "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }

    def take(self, file, directory):
        """Runs the command that takes a session from a file, if the program needs one."""
        if self.key == "opencode":
            command = [self.opencode(), "import", file]
            subprocess.run(command, env=self.environment(), cwd=directory, capture_output=True, timeout=SECONDS, check=True)

    def run(self, prompt, session=None, directory=None, is_fork=False):
        """Runs the program; returns its status, its last words, and its requests with their verdicts."""
        before = len(self.provider.seen)
        command = (self.fork if is_fork else self.command)(prompt, session)
        try:
            done = subprocess.run(
                command, env=self.environment(), cwd=directory or self.toy, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
            )
            status, words = done.returncode, (done.stderr + done.stdout).decode(errors="replace").strip()
        except subprocess.TimeoutExpired:
            status, words = -1, "does not end"
        return status, words.splitlines()[-1:] or [""], self.provider.seen[before:]

    def resume(self, session, said, directory=None):
        """Resumes a session with one more prompt. Returns what is wrong, or None if the request is accepted and holds all
        the texts that were said, and the request."""
        status, words, seen = self.run(LAST, session, directory)
        seen = [(body, why) for body, why in seen if LAST in json.dumps(body)]
        if not seen:
            # The path of the session is of this machine.
            words = re.sub(r"(?<!\S)/\S+", "PATH", words[0])
            return f"does not resume: {words[:80]}", {}
        body, why = seen[-1]
        if why:
            return f"refused: {why[:110]}", body
        # The input of a call can be JSON in a text.
        sent = "\n".join(strings(body))
        lost = [text for text in said if text not in sent and json.dumps(text, ensure_ascii=False)[1:-1] not in sent]
        if lost:
            return f"forgets '{lost[0][:60]}'", body
        refused = next((why for _, why in seen if why), None)
        if refused:
            return f"refused, then tries without: {refused[:110]}", body
        return (f"fails: {words[0][:80]}" if status else None), body

    def id(self, session):
        """Returns the id of a session, which is in the name of the file, or in its first line."""
        if self.key == "copilot":
            return session.parent.name
        if self.key == "opencode":
            return json.loads(session.read_text())["info"]["id"]
        name = session.stem[-36:]
        return name if name.count("-") == 4 and self.key != "gemini-cli" else json.loads(session.read_text().splitlines()[0])["sessionId"]

    def session(self):
        """Returns the newest session, or the database with all."""
        if self.key in DATABASES:
            return self.home / DATABASES[self.key]
        if self.key == "copilot":
            return max(self.home.glob(".copilot/session-state/*/events.jsonl"), key=lambda it: it.stat().st_mtime)
        files = [it for it in self.home.rglob("*.jsonl") if "agent-" not in it.name and it.stem != "history"]
        return max(files, key=lambda it: it.stat().st_mtime)

    def version(self):
        if self.key in OF_PIP:
            command = [self.root / self.name / "bin/pip", "show", PACKAGES[self.name]]
            shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            return next(line.split()[1] for line in shown.splitlines() if line.startswith("Version:"))
        package = self.root / self.name / "node_modules" / PACKAGES[self.name].removesuffix("@2.0.76") / "package.json"
        return json.loads(package.read_text())["version"]
