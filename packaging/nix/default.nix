# nix-build packaging/nix
{ pkgs ? import <nixpkgs> { } }:

let
  source = ../..;
  package = (builtins.fromTOML (builtins.readFile (source + "/Cargo.toml"))).package;
in
pkgs.rustPlatform.buildRustPackage {
  pname = package.name;
  inherit (package) version;
  src = pkgs.lib.cleanSource source;
  cargoLock.lockFile = source + "/Cargo.lock";

  # CI runs the tests, which need Chromium and other programs.
  doCheck = false;

  nativeBuildInputs = [ pkgs.makeWrapper ];
  buildPhase = "make";
  installPhase = ''
    make install PREFIX=$out
    for script in claw-turn claw-chat claw-retry claw-replay-parallel; do
      wrapProgram $out/bin/$script --prefix PATH : $out/bin
    done
  '';

  meta = {
    inherit (package) description;
    license = pkgs.lib.licenses.mit;
    platforms = pkgs.lib.platforms.unix;
    mainProgram = "claw-turn";
  };
}
