[[ $a =~ ^x(y|z)$ && ! -e b ]] && ((i++)) ; arr=(a b $(c)); echo ${arr[@]/x/y} {1..3} ~/a *.c $'\x41\n' "a\"b" \
 continued; ! true; { echo a; } 2>&1 >>log; (exit 3); coproc x { cat; }; select y in a b; do break; done; time ls |& grep -v "#" # comment
