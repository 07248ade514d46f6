cd a && cargo test --offline 2>&1 | tee out.log; git -C "$dir" status || echo "x $(date +%s) y" > /dev/null &
