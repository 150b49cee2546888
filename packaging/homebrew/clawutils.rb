class Clawutils < Formula
  desc "Unix tools for the sessions of LLM agents"
  homepage "@HOMEPAGE@"
  url "@SOURCE@"
  sha256 "@SHA256@"
  license "MIT"

  depends_on "rust" => :build

  def install
    system "make", "install", "PREFIX=#{prefix}"
  end

  test do
    ENV["CLAW_PROVIDER"] = "offline"
    assert_match "Reply to 1 message", shell_output("#{bin}/claw-turn -m Hello s.jsonl")
    system bin/"claw-check", "s.jsonl"
  end
end
