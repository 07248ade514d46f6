//! The rows: for each program, the calls that run nothing else. [`super`] interprets them.

use super::Operands::{Allowed, Any, CommandLine, Every, First, None, Only, Own};
use super::{ROW, Row, compiles, make_word, plain_remote};

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // Shells and interpreters: they may run a file, but no code from elsewhere.
    Row { names: "sh bash rbash dash ash", flags: "euxvfln", words: "--norc --noprofile --posix --login", operands: CommandLine, ..ROW },
    Row { names: "zsh ksh mksh", flags: "eux", operands: CommandLine, ..ROW },
    Row { names: "fish csh tcsh tclsh guile ocaml racket elixir escript osascript lua luajit", operands: CommandLine, ..ROW },
    Row { names: "python pypy", flags: "BbdEIOPqRsSuv", values: "WX", asks: "--version --help -V -VV -h", operands: CommandLine, ..ROW },
    Row { names: "perl", flags: "wWtT", asks: "--version --help -v", operands: CommandLine, ..ROW },
    Row { names: "ruby", flags: "wU", asks: "--version --help", operands: CommandLine, ..ROW },
    Row { names: "node nodejs tsx ts-node", words: "--test --check -c --watch --no-warnings --enable-source-maps --trace-warnings --expose-gc \
        --experimental-strip-types --experimental-vm-modules --transpile-only --esm --swc --no-cache",
        valued: "--max-old-space-size --tsconfig --project", asks: "--version --help -v -h", operands: CommandLine, ..ROW },
    Row { names: "php", flags: "n", asks: "--version --help -v -i -m", operands: CommandLine, ..ROW },
    Row { names: "Rscript", words: "--vanilla --no-save", operands: CommandLine, ..ROW },
    Row { names: "julia", valued: "--project --threads", operands: CommandLine, ..ROW },
    Row { names: "java", words: "-ea -jar", valued: "-cp -classpath --class-path", values: "D", asks: "-version --version --help",
        operands: Own, ..ROW },
    Row { names: "deno", flags: "Aq", words: "--allow-all --allow-read --allow-write --allow-net --allow-env --quiet --no-check --watch",
        operands: First("run test fmt lint check bench doc info cache compile install task"), ..ROW },
    Row { names: "bun", flags: "dD", words: "--watch --hot --production --frozen-lockfile", operands: First("run test install add remove build"), ..ROW },
    // Build tools and package managers.
    Row { names: "make gmake", flags: "BbkniqstwSrRdhv", values: "fCoWIl", attached: "jO", words: "--jobs --keep-going --dry-run --just-print \
        --silent --quiet --always-make --no-print-directory --print-directory --output-sync --trace --warn-undefined-variables \
        --no-builtin-rules --no-builtin-variables --ignore-errors --touch --question", valued: "--directory --file --makefile --jobs \
        --load-average --output-sync --include-dir", operands: Allowed(make_word), ..ROW },
    Row { names: "ninja", flags: "nvkd", values: "Cjkl", operands: Allowed(make_word), ..ROW },
    Row { names: "cmake", values: "SBGj", words: "-DCMAKE_BUILD_TYPE=Release -DCMAKE_BUILD_TYPE=Debug -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DBUILD_SHARED_LIBS=ON -DBUILD_TESTING=ON -DBUILD_TESTING=OFF --fresh --verbose",
        valued: "--build --target --config --install --parallel --preset -DCMAKE_INSTALL_PREFIX", operands: Allowed(make_word), ..ROW },
    Row { names: "ctest", flags: "VN", values: "RELCj", words: "--output-on-failure --verbose -VV --rerun-failed",
        valued: "--test-dir --parallel --timeout", ..ROW },
    Row { names: "meson", values: "C", words: "--wipe --reconfigure", valued: "--buildtype --prefix", operands: First("setup compile test install configure"), ..ROW },
    Row { names: "cargo", flags: "qvrdhV", values: "pjFEie", words: "--release --workspace --all --all-targets --all-features \
        --no-default-features --lib --bins --tests --examples --benches --doc --no-run --no-fail-fast --locked --offline --frozen --quiet \
        --verbose --check --fix --allow-dirty --allow-staged --allow-no-vcs --no-deps --open --document-private-items --duplicates \
        --dry-run --list --keep-going --force --dev --build --bin --ignored", valued: "--package --bin --test --example --bench \
        --features --target --target-dir --manifest-path --message-format --color --jobs --profile --exclude --path --git --branch --tag \
        --rev --format-version --depth --edges --prefix --root --edition --name --filter-platform --invert --timings",
        asks: "--version -V --help -h --list", operands: First("build b check c test t run r bench clippy fmt doc d clean update add remove \
        rm new init install uninstall tree metadata fetch search publish package vendor fix nextest expand audit deny outdated machete \
        locate-project pkgid generate-lockfile xtask"), ..ROW },
    Row { names: "rustc", flags: "Og", values: "o", words: "--test", valued: "--edition --crate-type --crate-name --emit --cfg --out-dir",
        asks: "--version --help -V -vV", ..ROW },
    Row { names: "go", words: "-v -race -cover -short -x -n -json -benchmem -trimpath -a -l -u -t -m -failfast", valued: "-run -bench -count \
        -timeout -tags -o -coverprofile -mod -parallel -p -cpu -covermode -benchtime -skip -C", operands: First("build test vet fmt mod \
        run get install version env list doc clean work generate"), ..ROW },
    Row { names: "gcc cc g++ c++ clang clang++ c89 c99", operands: Every(compiles), ..ROW },
    Row { names: "npm", flags: "DEgsywPO", words: "--save-dev --save-exact --save --global --silent --production --if-present --workspaces \
        --no-audit --no-fund --legacy-peer-deps --force --offline --prefer-offline --ignore-scripts --json --long --dry-run --yes --all",
        valued: "--workspace --prefix --depth --omit --include", asks: "--version --help -v -h", operands: First("run run-script test t tst \
        start stop restart install i ci add uninstall remove rm ls list outdated audit view info pack publish whoami why update prune \
        dedupe root fund cache init"), ..ROW },
    Row { names: "npx bunx uvx pipx", flags: "y", words: "--yes --no --no-install", operands: Own, ..ROW },
    Row { names: "yarn", flags: "DWs", words: "--frozen-lockfile --immutable --dev --production --silent --json --ignore-scripts",
        operands: First("install add remove upgrade run test build lint dev start format typecheck check why list info audit outdated up"), ..ROW },
    Row { names: "pnpm", flags: "Drw", words: "--frozen-lockfile --save-dev --recursive --prod --offline", valued: "--filter",
        operands: First("install i add remove run test build lint dev start update outdated list ls why audit"), ..ROW },
    Row { names: "pip", flags: "qvUy", values: "rect", words: "--upgrade --quiet --user --no-deps --no-cache-dir --pre --force-reinstall \
        --break-system-packages --disable-pip-version-check --no-build-isolation --no-input --dry-run --outdated", valued: "--requirement \
        --editable --index-url --extra-index-url --target --find-links --constraint", asks: "--version --help -V -h",
        operands: First("install list freeze show uninstall download check wheel index inspect"), ..ROW },
    Row { names: "uv", flags: "qv", values: "r", words: "--frozen --locked --upgrade --dev", operands: First("sync lock add remove venv pip tree build init version"), ..ROW },
    Row { names: "poetry", flags: "qvn", operands: First("install lock add remove update build show check version"), ..ROW },
    Row { names: "bundle bundler", operands: First("install update check list outdated add lock"), ..ROW },
    Row { names: "composer", operands: First("install update require remove dump-autoload validate show outdated"), ..ROW },
    Row { names: "rake", flags: "Tqst", operands: Allowed(make_word), ..ROW },
    Row { names: "rspec", words: "--fail-fast --color", ..ROW },
    Row { names: "mvn", flags: "qBoUeX", words: "-DskipTests -Dmaven.test.skip=true --quiet --batch-mode --offline", asks: "--version -v --help",
        operands: Only("clean compile test package install verify deploy site validate test-compile"), ..ROW },
    Row { names: "gradle gradlew", flags: "qis", words: "--info --debug --stacktrace --offline --no-daemon --parallel --continue --rerun-tasks --scan", ..ROW },
    Row { names: "dotnet", values: "cfov", words: "--no-restore --no-build --nologo", operands: First("build test run restore publish clean new add list"), ..ROW },
    Row { names: "mix", operands: Only("test deps.get deps.compile compile format credo dialyzer phx.server ecto.migrate"), ..ROW },
    Row { names: "swift", values: "c", operands: First("build test package run"), ..ROW },
    Row { names: "zig", operands: First("build test fmt version run"), ..ROW },
    Row { names: "docker podman", flags: "aqfd", values: "tnf", words: "--no-cache --all --rm", operands: First("ps images build pull push logs stop \
        start rm rmi inspect version info tag stats top diff history port kill restart compose"), ..ROW },
    Row { names: "kubectl", flags: "A", values: "nolf", operands: First("get describe logs apply delete create scale top version"), ..ROW },
    Row { names: "pytest py.test", flags: "qvsxlh", values: "kmnWc", attached: "r", words: "--lf --ff --sw --last-failed --failed-first \
        --no-header --collect-only --co --exitfirst --quiet --verbose --no-cov --strict-markers --cache-clear --cov", valued: "--tb --maxfail \
        --cov --cov-report --durations --ignore --deselect --junitxml --timeout --color --capture --cov-fail-under --import-mode", ..ROW },
    Row { names: "tox", flags: "qvrl", values: "e", operands: None, ..ROW },
    Row { names: "coverage", flags: "a", words: "--branch --append", valued: "--source --omit --include", operands: First("run report html xml erase combine"), ..ROW },
    // Programs with an option that starts something.
    Row { names: "jobs", flags: "lnprs", ..ROW },
    Row { names: "tar gtar bsdtar", flags: "xctruvzjJapkOhPlmWA", values: "fCXb", words: "--extract --create --list --gzip --bzip2 --xz --zstd \
        --verbose --append --update --keep-old-files --no-same-owner", valued: "--file --directory --exclude --strip-components \
        --exclude-from --transform", ..ROW },
    Row { names: "rsync", flags: "avzhnrlptgoDPxuqcHKLSWIkbi", words: "--delete --progress --dry-run --stats --archive --verbose --compress \
        --partial --update --checksum --inplace --delete-after --delete-excluded --recursive", valued: "--exclude --include --exclude-from \
        --include-from --max-size --bwlimit", ..ROW },
    Row { names: "scp sftp", flags: "rqpCv", values: "Pi", ..ROW },
    Row { names: "sort", flags: "bdfghinRrMVcCmsuz", values: "koStT", words: "--unique --reverse --numeric-sort --human-numeric-sort --stable",
        valued: "--key --field-separator --output --parallel", ..ROW },
    Row { names: "split", flags: "dx", values: "abCln", words: "--numeric-suffixes --verbose", valued: "--lines --bytes --number --suffix-length", ..ROW },
    Row { names: "rg", flags: "nilcvwxoFLNHSsuUahIqp0PV", values: "egtTABCfmMjr", words: "--files --hidden --no-ignore --files-with-matches \
        --count --line-number --ignore-case --multiline --json --stats --no-heading --heading --vimgrep --fixed-strings --word-regexp \
        --smart-case --only-matching --files-without-match --follow --no-messages --pcre2", valued: "--glob --type --type-not --context \
        --max-count --max-depth --sort --replace --color --iglob --max-filesize", ..ROW },
    Row { names: "fd fdfind", flags: "HIuLapi0sFg1", values: "etdEcS", words: "--hidden --no-ignore --follow --absolute-path", valued: "--extension \
        --type --max-depth --exclude", ..ROW },
    Row { names: "man", flags: "kfaw", ..ROW },
    Row { names: "less more", flags: "RSFXNEinsq", ..ROW },
    Row { names: "zip", flags: "rqjudvyx0123456789", ..ROW },
    Row { names: "wget", flags: "qcNnvSrkpmEb", values: "OoPUtTil", words: "--quiet --continue --spider --no-verbose --show-progress --no-check-certificate", ..ROW },
    Row { names: "apt apt-get", flags: "yqsmf", words: "--yes --no-install-recommends", operands: First("update install remove purge upgrade \
        dist-upgrade autoremove clean list show search"), ..ROW },
    Row { names: "journalctl systemctl", flags: "xefrqna", values: "u", words: "--no-pager --user --failed --now", valued: "--since --until --unit",
        operands: Any, ..ROW },
    // Subcommands of git whose options can name a command. Behind `::` in an address is a helper's own text.
    Row { names: "git-rebase", flags: "iqvf", words: "--continue --abort --skip --interactive --autostash --no-autostash --root --quiet --verbose \
        --keep-base --autosquash --quit --no-verify --force-rebase --update-refs", valued: "--onto", ..ROW },
    Row { names: "git-grep", flags: "nilLcvwEFPIhHoqzapW0123456789r", values: "eABCmf", words: "--cached --untracked --count --name-only \
        --line-number --files-with-matches --ignore-case --and --or --not --all-match --no-index --recurse-submodules --heading --break \
        --show-function --function-context --word-regexp", valued: "--threads --max-depth --context --max-count", ..ROW },
    Row { names: "git-fetch git-pull", flags: "apqvtfnkr46", words: "--all --prune --tags --no-tags --unshallow --rebase --no-rebase --ff-only \
        --no-ff --ff --quiet --verbose --force --dry-run --prune-tags --autostash --squash --no-edit --no-commit --recurse-submodules \
        --set-upstream --append --multiple --progress", valued: "--depth --rebase --deepen --shallow-since --jobs --filter", values: "j",
        operands: Allowed(plain_remote), ..ROW },
    Row { names: "git-merge", flags: "nqve", values: "mXF", words: "--no-ff --ff --ff-only --squash --abort --continue --quit --no-edit \
        --no-commit --commit --edit --stat --no-stat --log --signoff --allow-unrelated-histories --no-verify --autostash", valued: "--into-name", ..ROW },
    Row { names: "git-cherry-pick git-revert", flags: "nxes", values: "mX", words: "--no-edit --edit --continue --abort --skip --quit \
        --no-commit --signoff --allow-empty --ff", ..ROW },
    Row { names: "git-clone", flags: "qvnl", values: "bo", words: "--bare --mirror --recursive --recurse-submodules --single-branch --no-checkout \
        --shallow-submodules --quiet --no-tags --progress --no-local --sparse", valued: "--depth --branch --origin --jobs --filter --reference",
        operands: Allowed(plain_remote), ..ROW },
    Row { names: "git-push", flags: "uqvfnd46", values: "o", words: "--all --tags --force --force-with-lease --dry-run --set-upstream --delete \
        --follow-tags --mirror --prune --quiet --verbose --no-verify --atomic --porcelain --progress", valued: "--force-with-lease \
        --push-option", operands: Allowed(plain_remote), ..ROW },
    Row { names: "git-ls-remote", flags: "htq", words: "--heads --tags --refs --exit-code --symref", operands: Allowed(plain_remote), ..ROW },
    Row { names: "git-remote", flags: "v", values: "tm", words: "--tags --no-tags --verbose --prune --push --add --delete --all", operands: Allowed(plain_remote), ..ROW },
    Row { names: "git-archive", flags: "vl0123456789", values: "o", valued: "--format --output --prefix", ..ROW },
    Row { names: "git-submodule", flags: "qfb", words: "--init --recursive --remote --quiet --force", valued: "--depth",
        operands: First("status update init sync deinit summary absorbgitdirs"), ..ROW },
    Row { names: "git-bisect", words: "--no-checkout --first-parent", operands: First("start good bad new old reset skip log terms"), ..ROW },
    Row { names: "git-init", flags: "q", values: "b", words: "--bare --quiet", valued: "--initial-branch", ..ROW },
];
