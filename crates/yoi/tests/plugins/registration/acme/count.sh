# The arguments are one JSON object with one text, so its words are those of the line less the key.
read -r line
text=${line#*:\"}
set -f
set -- ${text%\"\}}
echo "$# words"
