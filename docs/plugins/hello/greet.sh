# Called as: sh greet.sh [--language=LANGUAGE] -- WHO. The arguments are also on standard input, as JSON.
language=en
case "$1" in
--language=*)
    language=${1#--language=}
    shift
    ;;
esac
shift
case "$language" in
de) word="Guten Tag" ;;
fr) word="Bonjour" ;;
*) word="Hello" ;;
esac
if [ -z "$1" ]; then
    echo "The name is empty; give the name of a person."
    exit 1
fi
printf '%s, %s!\n' "$word" "$1"
