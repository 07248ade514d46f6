{
  description = "yoi: LLM agents as named, durable processes";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      each = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
      manifest = builtins.fromTOML (builtins.readFile ./Cargo.toml);
    in
    {
      packages = each (pkgs: rec {
        default = yoi;
        yoi = pkgs.rustPlatform.buildRustPackage {
          pname = "yoi";
          version = manifest.workspace.package.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          buildType = "dist";
          cargoBuildFlags = [ "--package" "yoi" ];
          # Tests start confined children and git, which the build sandbox does not allow; they are .ci/run's.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = pkgs.lib.optionalString (pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform) ''
            $out/bin/yoi man man1
            installManPage man1/*.1
            for shell in bash fish zsh; do
              $out/bin/yoi completions "$shell" > "yoi.$shell"
            done
            installShellCompletion --cmd yoi --bash yoi.bash --fish yoi.fish --zsh yoi.zsh
          '';
          meta = {
            description = "LLM agents as named, durable processes";
            license = [ pkgs.lib.licenses.mit pkgs.lib.licenses.asl20 ];
            mainProgram = "yoi";
            platforms = systems;
          };
        };
      });

      devShells = each (pkgs: {
        default = pkgs.mkShell {
          packages = with pkgs; [ cargo clippy rustc rustfmt rust-analyzer git jq python3 strace ];
        };
      });

      checks = each (pkgs: {
        yoi = self.packages.${pkgs.system}.yoi;
        work-items = pkgs.runCommand "work-items" { nativeBuildInputs = [ pkgs.git ]; } ''
          cp -r ${self} tree && chmod -R u+w tree && cd tree
          sh ./tickets.sh doctor && sh .ci/tickets-test && touch $out
        '';
      });

      formatter = each (pkgs: pkgs.nixfmt-rfc-style);
    };
}
