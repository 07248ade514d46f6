//! Each way to have the person's git run something: it runs where nothing is watched, and does not where it is.

use crate::scene::{scene, told};

struct Plant {
    what: &'static str,
    /// What the person has before.
    given: &'static str,
    command: &'static str,
    /// What the person does after, `git` before it.
    trigger: &'static str,
}

const fn plant(what: &'static str, command: &'static str, trigger: &'static str) -> Plant {
    Plant {
        what,
        given: "",
        command,
        trigger,
    }
}

const fn given(
    what: &'static str,
    given: &'static str,
    command: &'static str,
    trigger: &'static str,
) -> Plant {
    Plant {
        what,
        given,
        command,
        trigger,
    }
}

const HOOK: &str = "commit --allow-empty -qm x";

const KEYS: &[Plant] = &[
    plant(
        "core.fsmonitor",
        "git config core.fsmonitor 'touch CANARY;:'",
        "status",
    ),
    plant(
        "any case",
        "printf '[CoRe]\\nFSMonitor = \"touch CANARY;:\"' >> .git/config",
        "status",
    ),
    plant(
        "odd writing",
        "printf '[core] fsmonitor = touch\" \"\\\\\\nCANARY\" ;:\"; x' > .git/config",
        "status",
    ),
    plant(
        "core.hooksPath",
        "git config core.hooksPath there; printf '#!/bin/sh\\ntouch CANARY' > there/pre-commit; chmod +x there/pre-commit",
        HOOK,
    ),
    plant(
        "core.editor",
        "git config core.editor 'touch CANARY;:'",
        "commit --amend --allow-empty",
    ),
    plant(
        "sequence.editor",
        "git config sequence.editor 'touch CANARY;:'",
        "rebase -i HEAD~1",
    ),
    plant(
        "core.sshCommand",
        "git config core.sshCommand 'touch CANARY;:'",
        "ls-remote ssh://host/x",
    ),
    plant(
        "core.askPass",
        "printf '#!/bin/sh\\ntouch CANARY' > src/ask; chmod +x src/ask; git config core.askPass ROOT/src/ask",
        "credential fill <<EOF\nurl=http://host\nEOF\n",
    ),
    plant(
        "core.gitProxy",
        "printf '#!/bin/sh\\ntouch CANARY' > src/proxy; chmod +x src/proxy; git config core.gitProxy ROOT/src/proxy",
        "ls-remote git://host/x",
    ),
    plant(
        "core.alternateRefsCommand",
        "git clone -q --bare . src/other; echo ROOT/src/other/objects > .git/objects/info/alternates; git config core.alternateRefsCommand 'touch CANARY;:'",
        "fetch -q src/other main",
    ),
    plant("alias", "git config alias.st '!touch CANARY'", "st"),
    plant(
        "alias of options",
        "git config alias.st '-c core.fsmonitor=\"touch CANARY;:\" status'",
        "st",
    ),
    plant(
        "alias of exec",
        "git config alias.rb 'rebase --exec \"touch CANARY\" HEAD~1'",
        "rb",
    ),
    plant(
        "alias of words",
        "git config alias.b 'bisect run touch CANARY'",
        "bisect start HEAD HEAD~1; git b",
    ),
    plant(
        "filter clean",
        "git config filter.f.clean 'touch CANARY;cat'; echo '* filter=f' > .gitattributes",
        "add .",
    ),
    plant(
        "filter smudge",
        "git config filter.f.smudge 'touch CANARY;cat'; echo '* filter=f' > .gitattributes; rm src/a",
        "checkout -- src/a",
    ),
    plant(
        "filter process",
        "git config filter.f.process 'touch CANARY;:'; echo '* filter=f' > .gitattributes",
        "add .",
    ),
    plant(
        "filter by info/attributes",
        "git config filter.f.clean 'touch CANARY;cat'; echo '* filter=f' > .git/info/attributes; echo x >> src/a",
        "add .",
    ),
    plant(
        "diff.external",
        "git config diff.external 'touch CANARY;:'; echo x >> src/a",
        "diff",
    ),
    plant(
        "diff command",
        "git config diff.d.command 'touch CANARY;:'; echo '* diff=d' > .gitattributes; echo x >> src/a",
        "diff",
    ),
    plant(
        "diff textconv",
        "git config diff.d.textconv 'touch CANARY;cat'; echo '* diff=d' > .gitattributes; echo x >> src/a",
        "diff",
    ),
    plant(
        "merge driver",
        "git config merge.m.driver 'touch CANARY;:'; echo '* merge=m' > .git/info/attributes; git checkout -qb x HEAD~1; echo y > src/a; git commit -qam y; git checkout -q main; echo z > src/a; git commit -qam z",
        "merge x",
    ),
    plant(
        "credential.helper",
        "git config credential.helper '!touch CANARY;:'",
        "credential fill <<EOF\nurl=http://host\nEOF\n",
    ),
    plant(
        "credential.url.helper",
        "git config credential.http://host.helper '!touch CANARY;:'",
        "credential fill <<EOF\nurl=http://host\nEOF\n",
    ),
    plant(
        "include.path",
        "printf '[core]\\nfsmonitor=touch CANARY;:' > src/inc; git config include.path ../src/inc",
        "status",
    ),
    plant(
        "includeIf",
        "printf '[core]\\nfsmonitor=touch CANARY;:' > src/inc; git config includeIf.gitdir:/.path ../src/inc",
        "status",
    ),
    plant(
        "gpg.program",
        "printf '#!/bin/sh\\ntouch CANARY' > src/gpg; chmod +x src/gpg; git config gpg.program ROOT/src/gpg",
        "commit -S --allow-empty -m x",
    ),
    plant(
        "gpg.ssh.program",
        "printf '#!/bin/sh\\ntouch CANARY' > src/gpg; chmod +x src/gpg; git config gpg.ssh.program ROOT/src/gpg; git config gpg.format ssh; git config user.signingKey key",
        "commit -S --allow-empty -m x",
    ),
    plant(
        "gpg.ssh.defaultKeyCommand",
        "git config gpg.ssh.defaultKeyCommand 'touch CANARY'; git config gpg.format ssh; printf '#!/bin/sh\\ntouch CANARY' > src/k; chmod +x src/k; git config gpg.ssh.defaultKeyCommand ROOT/src/k",
        "commit -S --allow-empty -m x",
    ),
    plant(
        "trailer command",
        "git config trailer.t.command 'touch CANARY'; git config trailer.t.key T",
        "interpret-trailers --trailer t=1 < src/a",
    ),
    plant(
        "trailer cmd",
        "git config trailer.t.cmd 'touch CANARY;:'; git config trailer.t.key T",
        "interpret-trailers --trailer t=1 < src/a",
    ),
    plant(
        "difftool",
        "git config difftool.t.cmd 'touch CANARY'; git config diff.tool t; echo x >> src/a",
        "difftool -y",
    ),
    plant(
        "difftool path",
        "printf '#!/bin/sh\\ntouch CANARY' > src/vd; chmod +x src/vd; git config difftool.meld.path ROOT/src/vd; git config diff.tool meld; echo x >> src/a",
        "difftool -y",
    ),
    plant(
        "uploadpack",
        "git config remote.r.url .; git config remote.r.uploadpack 'touch CANARY;:'",
        "fetch r",
    ),
    plant(
        "receivepack",
        "git config remote.r.url .; git config remote.r.receivepack 'touch CANARY;:'",
        "push r main",
    ),
    plant(
        "protocol ext",
        "git config protocol.ext.allow always; git config remote.r.url 'ext::touch CANARY'",
        "fetch r",
    ),
    plant(
        "protocol ext by a rewrite",
        "git config protocol.ext.allow always; git config 'url.ext::touch CANARY.insteadOf' x:; git config remote.r.url x:",
        "fetch r",
    ),
    plant(
        "archive",
        "git config tar.x.command 'touch CANARY;:'",
        "archive --format=x HEAD",
    ),
    plant(
        "submodule update",
        "git clone -q . src/s; git -c protocol.file.allow=always submodule -q add ./src/s sub; git config submodule.sub.update '!touch CANARY'; git commit -qam s; git -C sub checkout -q HEAD~1",
        "-c protocol.file.allow=always submodule update",
    ),
    plant(
        "browser",
        "git config browser.b.cmd 'touch CANARY;:'; git config web.browser b",
        "web--browse http://x",
    ),
    plant(
        "man viewer",
        "git config man.v.cmd 'touch CANARY;:'; git config man.viewer v",
        "help -m status",
    ),
    plant(
        "sendemail.tocmd",
        "git config sendemail.tocmd 'touch CANARY;:'",
        "send-email --dry-run --from=a@x --subject=x HEAD~1",
    ),
    given(
        "another value",
        "config core.editor true",
        "git config core.editor 'touch CANARY;:'",
        "commit --amend --allow-empty",
    ),
    given(
        "one more value",
        "config credential.helper store",
        "git config --add credential.helper '!touch CANARY;:'",
        "credential fill <<EOF\nurl=http://host\nEOF\n",
    ),
];

const PLACES: &[Plant] = &[
    plant(
        "a hook",
        "printf '#!/bin/sh\\ntouch CANARY' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        HOOK,
    ),
    given(
        "a changed hook",
        "init -q; printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "echo 'touch CANARY' >> .git/hooks/pre-commit",
        HOOK,
    ),
    given(
        "a hook made executable",
        "init -q; printf '#!/bin/sh\\ntouch CANARY' > .git/hooks/pre-commit",
        "chmod +x .git/hooks/pre-commit",
        HOOK,
    ),
    given(
        "a sample made a hook",
        "init -q; printf '#!/bin/sh\\ntouch CANARY' > .git/hooks/pre-commit.sample; chmod +x .git/hooks/*",
        "mv .git/hooks/pre-commit.sample .git/hooks/pre-commit",
        HOOK,
    ),
    plant(
        "a linked hook",
        "printf '#!/bin/sh\\ntouch CANARY' > src/h; chmod +x src/h; ln -s ../../src/h .git/hooks/pre-commit",
        HOOK,
    ),
    plant(
        "a hard link",
        "printf '#!/bin/sh\\ntouch CANARY' > src/h; chmod +x src/h; ln src/h .git/hooks/pre-commit",
        HOOK,
    ),
    given(
        "what a hook links to",
        "init -q; printf '#!/bin/sh\\n' > src/h; chmod +x src/h; ln -s ../../src/h .git/hooks/pre-commit",
        "echo 'touch CANARY' >> src/h",
        HOOK,
    ),
    plant(
        "a link for hooks",
        "printf '#!/bin/sh\\ntouch CANARY' > there/pre-commit; chmod +x there/pre-commit; rm -r .git/hooks; ln -s ../there .git/hooks",
        HOOK,
    ),
    plant(
        "a link for hooks outside",
        "printf '#!/bin/sh\\ntouch CANARY' > OUTSIDE/pre-commit; chmod +x OUTSIDE/pre-commit; mv .git/hooks .git/h; ln -s OUTSIDE .git/hooks",
        HOOK,
    ),
    given(
        "the existing path of hooks",
        "config core.hooksPath there",
        "printf '#!/bin/sh\\ntouch CANARY' > there/pre-commit; chmod +x there/pre-commit",
        HOOK,
    ),
    given(
        "a path of hooks that was missing",
        "config core.hooksPath new/dir",
        "mkdir -p new/dir; printf '#!/bin/sh\\ntouch CANARY' > new/dir/pre-commit; chmod +x new/dir/pre-commit",
        HOOK,
    ),
    given(
        "an existing inclusion",
        "config include.path ../inc; echo > inc",
        "printf '[core]\\nfsmonitor=touch CANARY;:' > inc",
        "status",
    ),
    given(
        "an inclusion that was missing",
        "config include.path ../inc",
        "printf '[core]\\nfsmonitor=touch CANARY;:' > inc",
        "status",
    ),
    given(
        "an inclusion of an inclusion",
        "config include.path ../inc; printf '[include]\\npath=inc2' > inc",
        "printf '[core]\\nfsmonitor=touch CANARY;:' > inc2",
        "status",
    ),
    given(
        "config.worktree",
        "config extensions.worktreeConfig true",
        "git config --worktree core.fsmonitor 'touch CANARY;:'",
        "status",
    ),
    given(
        "config.worktree by its switch",
        "init -q; git config core.repositoryFormatVersion 1",
        "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor 'touch CANARY;:'",
        "status",
    ),
    plant(
        "a linked configuration",
        "cp .git/config src/c; printf '[core]\\nfsmonitor=touch CANARY;:' >> src/c; ln -sf ../src/c .git/config",
        "status",
    ),
    plant(
        "a hard-linked configuration",
        "cp .git/config src/c; printf '[core]\\nfsmonitor=touch CANARY;:' >> src/c; ln -f src/c .git/config",
        "status",
    ),
    plant(
        "a linked configuration outside",
        "cp .git/config OUTSIDE/c; printf '[core]\\nfsmonitor=touch CANARY;:' >> OUTSIDE/c; ln -sf OUTSIDE/c .git/config",
        "status",
    ),
    plant(
        "a new .git",
        "rm -rf .git; git init -q; git config core.fsmonitor 'touch CANARY;:'",
        "status",
    ),
    plant(
        "a .git file that leads outside",
        "git init -q OUTSIDE/r; git -C OUTSIDE/r config core.fsmonitor 'touch CANARY;:'; mv .git old; echo gitdir: OUTSIDE/r/.git > .git",
        "status",
    ),
    plant(
        "a .git file that leads inside",
        "mv .git src/deep; git --git-dir=src/deep config core.fsmonitor 'touch CANARY;:'; echo gitdir: src/deep > .git",
        "status",
    ),
    plant(
        "a .git link that leads outside",
        "git init -q OUTSIDE/r; git -C OUTSIDE/r config core.fsmonitor 'touch CANARY;:'; mv .git old; ln -s OUTSIDE/r/.git .git",
        "status",
    ),
    plant(
        "a .git link that leads inside",
        "mv .git src/deep; git --git-dir=src/deep config core.fsmonitor 'touch CANARY;:'; ln -s src/deep .git",
        "status",
    ),
    plant(
        "commondir outside",
        "git init -q OUTSIDE/r; git -C OUTSIDE/r config core.fsmonitor 'touch CANARY;:'; git -C OUTSIDE/r commit -q --allow-empty -m x; echo OUTSIDE/r/.git > .git/commondir",
        "status",
    ),
    plant(
        "commondir inside",
        "git init -q src/r; git -C src/r config core.fsmonitor 'touch CANARY;:'; git -C src/r commit -q --allow-empty -m x; echo ../src/r/.git > .git/commondir",
        "status",
    ),
    plant(
        "a nested repository",
        "git init -q src/n; printf '#!/bin/sh\\ntouch CANARY' > src/n/.git/hooks/pre-commit; chmod +x src/n/.git/hooks/pre-commit",
        "-C src/n commit --allow-empty -qm x",
    ),
    plant(
        "a nested repository's configuration",
        "git init -q src/n/m; git -C src/n/m config core.fsmonitor 'touch CANARY;:'",
        "-C src/n/m status",
    ),
    given(
        "an existing nested repository",
        "init -q src/n",
        "git -C src/n config core.fsmonitor 'touch CANARY;:'",
        "-C src/n status",
    ),
    plant(
        "a bare repository",
        "git init -q --bare src/b; git -C src/b config core.bare false; git -C src/b config core.worktree ..; git -C src/b config core.fsmonitor 'touch CANARY;:'",
        "-C src/b status",
    ),
    plant(
        "a bare repository's hook",
        "git init -q --bare src/b; printf '#!/bin/sh\\ntouch CANARY' > src/b/hooks/post-receive; chmod +x src/b/hooks/post-receive",
        "push -q src/b main",
    ),
    given(
        "a submodule",
        "clone -q . src/s; git -c protocol.file.allow=always submodule -q add ./src/s sub",
        "git -C sub config core.fsmonitor 'touch CANARY;:'",
        "-C sub status",
    ),
    given(
        "a submodule's hook",
        "clone -q . src/s; git -c protocol.file.allow=always submodule -q add ./src/s sub",
        "mkdir -p .git/modules/sub/hooks; printf '#!/bin/sh\\ntouch CANARY' > .git/modules/sub/hooks/pre-commit; chmod +x .git/modules/sub/hooks/pre-commit",
        "-C sub commit --allow-empty -qm x",
    ),
    given(
        "a worktree",
        "worktree add -q wt",
        "git config extensions.worktreeConfig true; git -C wt config --worktree core.fsmonitor 'touch CANARY;:'",
        "-C wt status",
    ),
    given(
        "a relative path of hooks in a worktree",
        "worktree add -q wt; git config core.hooksPath hk",
        "mkdir wt/hk; printf '#!/bin/sh\\ntouch CANARY' > wt/hk/pre-commit; chmod +x wt/hk/pre-commit",
        "-C wt commit --allow-empty -qm x",
    ),
    given(
        "a submodule's .git file",
        "clone -q . src/s; git -c protocol.file.allow=always submodule -q add ./src/s sub",
        "git init -q OUTSIDE/r; git -C OUTSIDE/r config core.fsmonitor 'touch CANARY;:'; echo gitdir: OUTSIDE/r/.git > sub/.git",
        "-C sub status",
    ),
    given(
        "a link for modules",
        "clone -q . src/s; git -c protocol.file.allow=always submodule -q add ./src/s sub",
        "mv .git/modules OUTSIDE/m; ln -s OUTSIDE/m .git/modules; git config -f OUTSIDE/m/sub/config core.worktree ROOT/sub; git config -f OUTSIDE/m/sub/config core.fsmonitor 'touch CANARY;:'",
        "-C sub status",
    ),
    plant(
        "moved into place",
        "mkdir src/x; printf '#!/bin/sh\\ntouch CANARY' > src/x/pre-commit; chmod +x src/x/pre-commit; rm -r .git/hooks; mv src/x .git/hooks",
        HOOK,
    ),
];

#[test]
fn nothing_planted_in_a_key_runs() {
    none_runs(KEYS);
}

#[test]
fn nothing_planted_in_a_place_runs() {
    none_runs(PLACES);
}

fn none_runs(plants: &[Plant]) {
    let only = std::env::var("YOI_TEST_ONLY").ok();
    let mut wrong = Vec::new();
    for Plant {
        what,
        given,
        command,
        trigger,
    } in plants
    {
        if only.as_ref().is_some_and(|only| only != what) {
            continue;
        }
        // Where nothing is watched they run, or the case would show nothing: a long profile looks at that.
        let both = std::env::var_os("YOI_TEST_GIT").is_some();
        for watched in [false, true].into_iter().filter(|watched| *watched || both) {
            let scene = scene();
            if !given.is_empty() {
                scene.git(given);
            }
            let found = if watched {
                scene.run(command)
            } else {
                (scene.unguarded(command), Vec::new()).1
            };
            let ran = scene.ran(trigger);
            if ran == watched {
                wrong.push(format!(
                    "{what}: watched {watched}, ran {ran}: {:?}",
                    told(&scene, &found)
                ));
            }
            if watched && found.is_empty() {
                wrong.push(format!("{what}: nobody was told"));
            }
            assert!(scene.dir.path().exists());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
