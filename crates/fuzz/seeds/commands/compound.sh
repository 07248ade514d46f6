if [ -f a ]; then for i in 1 2 "$@"; do case $i in a*) rm -rf "$i";; *) : ;; esac; done; else while read -r x; do echo "${x%/*}"; done < <(ls); fi
f() { local a=1; printf '%s\n' "$a"; }; f 'quoted $(not run)' "`whoami`" $((1 + $(id -u)))
