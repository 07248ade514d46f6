#!/bin/sh
# Work items as plain files. `./tickets.sh help` lists the commands.
#
#   work-items/{open,pending,closed}/<YYYYmmdd-HHMMSS-slug>/
#     item.md     ten front-matter lines in a fixed order, then the body
#     thread.md   numbered, dated, authored events; append-only; every line of a text stands behind `>`
#                 (the older form, headings like `## Created` above free text, is read and kept; events follow it)
#     artifacts/  files that belong to the item (absent while empty)
#
# No text can forge an event, because an event line starts with `##` and a text line with `>`. No text can break
# the front matter, because it is twelve lines long and nothing behind the twelfth is read as front matter.
# One writer at a time: work-items/.lock is made by mkdir and holds the files that are about to be renamed.
set -eu
LC_ALL=C
export LC_ALL
umask 022

STATUSES='open pending closed'
KINDS='bug chore design docs feature task'
PRIORITIES='low normal high urgent'
VERDICTS='approve request-changes comment'
ROLES='plan decision implementation_report comment'
TIME='[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z' # as awk matches it
MAX_TITLE=200    # bytes: one line of a listing
MAX_SLUG=60      # bytes: leaves room for the rest of a path
MAX_AUTHOR=120   # bytes
MAX_TEXT=262144  # bytes: longer material is an artefact
LOCK_TRIES=100   # of 0.1 s

lock=''

die() {
    printf 'tickets.sh: %s\n' "$1" >&2
    exit 1
}

usage() {
    printf 'tickets.sh: %s\nhelp: ./tickets.sh help\n' "$1" >&2
    exit 2
}

help() {
    cat <<'END'
usage: ./tickets.sh COMMAND

  list [--all] [--status S] [--kind K] [--label L]   what is open or pending (--all: everything)
  show ID                                            the item, its thread and its artefacts
  create [options] [--] TITLE                        a new item; prints its id
      --kind K --priority P --labels a,b --assignee NAME --slug SLUG --status S
      --body TEXT (- reads stdin)
  comment ID [--role R] [TEXT]                       add to the thread; without TEXT, or with -, from stdin
      --role plan, decision, implementation_report or comment (the default)
  review ID VERDICT [TEXT]                           approve, request-changes or comment
  status ID STATUS [TEXT]                            move it to open, pending or closed
  close ID TEXT                                      close it, saying how it was settled
  doctor                                             check every record

ID is an id, the beginning of one, or a slug, as long as it means one item.
Kinds: bug chore design docs feature task. Priorities: low normal high urgent.
Title, kind, priority, labels, assignee and body may be edited in item.md; doctor says when that went wrong.
TICKETS_AUTHOR names the author (else git's user.name, else unknown); TICKETS_NOW=2026-01-31T12:00:00Z the time.
Exit codes: 0 done, 1 failed or unhealthy, 2 usage.
END
}

# ---- where the records are

find_root() {
    dir=$(pwd -P)
    while [ "$dir" != / ]; do
        [ -f "$dir/tickets.sh" ] && { root=$dir; return; }
        dir=$(dirname -- "$dir")
    done
    root=$(cd "$(dirname -- "$0")" && pwd -P)
    [ -f "$root/tickets.sh" ] || die 'not inside a repository that has a tickets.sh; change into it'
}

take_lock() {
    mkdir -p "$items" || die "cannot make $items"
    [ -w "$items" ] || die "cannot write in $items"
    tries=0
    until mkdir "$items/.lock" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt "$LOCK_TRIES" ] ||
            die "another tickets.sh holds $items/.lock; if none runs, remove that directory"
        sleep 0.1 2>/dev/null || sleep 1
    done
    lock=$items/.lock
}

drop_lock() {
    [ -z "$lock" ] || rm -rf "$lock"
    lock=''
}

# ---- values

is_one_of() { # word, list
    case $1 in '' | *[!a-z_-]*) return 1 ;; esac
    case " $2 " in *" $1 "*) return 0 ;; esac
    return 1
}

# Control characters of C1, zero-width and direction marks, separators: what makes a line look like another one.
has_hidden() {
    printf '%s\n' "$1" | hidden_lines >/dev/null
}

hidden_lines() {
    c1=$(printf '\302[\200-\237]')
    marks=$(printf '\342\200[\213\216\217\250-\256]')
    isolates=$(printf '\342\201[\240-\257]')
    bom=$(printf '\357\273\277')
    grep -e "$c1" -e "$marks" -e "$isolates" -e "$bom"
}

is_utf8() {
    command -v iconv >/dev/null 2>&1 || return 0
    printf '%s' "$1" | iconv -f UTF-8 -t UTF-8 >/dev/null 2>&1
}

check_line() { # what, value, most bytes
    case $2 in
    '') die "the $1 is empty" ;;
    *[[:cntrl:]]*) die "the $1 has a line break or another control character; write it on one plain line" ;;
    ' '* | *' ') die "the $1 begins or ends with a space" ;;
    esac
    [ "${#2}" -le "$3" ] || die "the $1 has ${#2} bytes; at most $3"
    is_utf8 "$2" || die "the $1 is not UTF-8"
    if has_hidden "$2"; then die "the $1 has an invisible or direction-changing character"; fi
}

check_text() { # what, value
    [ "${#2}" -le "$MAX_TEXT" ] || die "the $1 has ${#2} bytes, at most $MAX_TEXT; make it an artefact"
    left=$(printf '%s' "$2" | tr -d '\11\12\40-\176\200-\377' | wc -c)
    [ "$left" -eq 0 ] || die "the $1 has control characters; only line feeds and tabs may stand in it"
    is_utf8 "$2" || die "the $1 is not UTF-8"
    if has_hidden "$2"; then die "the $1 has an invisible or direction-changing character"; fi
}

read_text() { # what, given or -
    text=$2
    if [ "$text" = - ]; then
        [ ! -t 0 ] || printf 'tickets.sh: reading the %s from the terminal; end with Ctrl-D\n' "$1" >&2
        text=$(cat)
    fi
    check_text "$1" "$text"
    case $text in *[![:space:]]*) ;; *) text='' ;; esac
}

quoted() {
    printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"
}

is_time() {
    case $1 in
    [0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z) return 0 ;;
    esac
    return 1
}

set_now() {
    now=${TICKETS_NOW:-$(date -u +%Y-%m-%dT%H:%M:%SZ)}
    is_time "$now" || die "TICKETS_NOW is '$now'; write it like 2026-01-31T12:00:00Z"
}

set_author() {
    author=${TICKETS_AUTHOR:-}
    [ -n "$author" ] || author=$(git -C "$root" config user.name 2>/dev/null) || author=''
    [ -n "$author" ] || author=unknown
    check_line author "$author" "$MAX_AUTHOR"
}

later_of() {
    printf '%s\n%s\n' "$1" "$2" | sort | tail -n 1
}

# ---- finding an item

find_item() { # id, beginning or slug -> dir, id, status
    case $1 in
    '' | *[!a-z0-9-]* | -*) die "'$1' is no id; ids look like 20260131-120000-a-slug" ;;
    esac
    hits=0
    for path in "$items"/open/*/ "$items"/pending/*/ "$items"/closed/*/; do
        path=${path%/}
        name=${path##*/}
        [ -f "$path/item.md" ] || continue
        case $name in "$1"*) ;; ????????-??????-"$1") ;; *) continue ;; esac
        [ "$name" != "$1" ] || hits=0
        hits=$((hits + 1))
        dir=$path
        [ "$name" != "$1" ] || break
    done
    [ "$hits" -gt 0 ] || die "no item '$1'; ./tickets.sh list --all shows what there is"
    [ "$hits" -eq 1 ] || die "'$1' means $hits items; give more of the id"
    id=${dir##*/}
    status=${dir%/*}
    status=${status##*/}
}

field() { # file, key: as it stands in the front matter
    awk -v key="$2" 'NR > 12 { exit } index($0, key ": ") == 1 { print substr($0, length(key) + 3); exit }' "$1"
}

plain() { # undo quoted()
    sed 's/^"//; s/"$//; s/\\\([\\"]\)/\1/g' | tr -d '\000-\010\013-\037\177'
}

# ---- writing

strip_ends() {
    sed 's/[[:space:]]*$//'
}

write_item() { # file; the variables say the rest
    {
        printf -- '---\n'
        printf 'id: %s\nslug: %s\ntitle: %s\nstatus: %s\n' "$id" "$slug" "$(quoted "$title")" "$status"
        printf 'kind: %s\npriority: %s\nlabels: [%s]\n' "$kind" "$priority" "$labels"
        printf 'created_at: %s\nupdated_at: %s\n' "$now" "$now"
        if [ -n "$assignee" ]; then printf 'assignee: %s\n' "$(quoted "$assignee")"; else printf 'assignee: ""\n'; fi
        printf -- '---\n'
        [ -z "$text" ] || printf '\n%s\n' "$text" | strip_ends
    } >"$1"
}

write_event() { # number, time, what, text
    printf '\n## %s | %s | %s | %s\n' "$1" "$2" "$3" "$author"
    [ -z "$4" ] || { printf '\n' && printf '%s\n' "$4" | strip_ends | sed 's/^/> /; s/^> $/>/'; }
}

# Whether a thread begins in the older form.
is_older() { # file
    awk 'NR == 1 && /^<!-- event: / { older = 1; exit }
        /^## / { older = $0 == "## Created"; exit }
        END { exit !older }' "$1"
}

# The thread first, then the front matter: a crash in between leaves an old updated_at, which doctor names.
add_event() { # what, text, new status
    older=0
    if is_older "$dir/thread.md"; then older=1; fi
    last=$(awk -v older="$older" -v time="$TIME" -v created="$(field "$dir/item.md" created_at)" '
        NR == 1 && older { t = created }
        older && /^<!-- event: / && match($0, ".* at: " time) { t = substr($0, RLENGTH - 19, 20) }
        older && $0 ~ "^## 1 [|] " time " [|] " { older = 0 }
        !older && /^## / { split($0, part, " [|] "); sub(/^## /, "", part[1]); n = part[1]; t = part[2] }
        END { print n + 0, t }' "$dir/thread.md")
    number=$((${last%% *} + 1))
    when=$(later_of "$now" "${last#* }")
    { cat "$dir/thread.md" && write_event "$number" "$when" "$1" "$2"; } >"$lock/thread.md"
    mv -f "$lock/thread.md" "$dir/thread.md"
    awk -v status="$3" -v updated="$when" '
        NR <= 12 && /^status: / { print "status: " status; next }
        NR <= 12 && /^updated_at: / { print "updated_at: " updated; next }
        { print }' "$dir/item.md" >"$lock/item.md"
    mv -f "$lock/item.md" "$dir/item.md"
}

# ---- commands

cmd_list() {
    want='open pending'
    want_kind=''
    want_label=''
    while [ $# -gt 0 ]; do
        case $1 in
        --all) want=$STATUSES ;;
        --status | --kind | --label)
            [ $# -gt 1 ] || usage "$1 needs a value"
            case $1 in --status) want=$2 ;; --kind) want_kind=$2 ;; --label) want_label=$2 ;; esac
            shift
            ;;
        *) usage "list knows no '$1'" ;;
        esac
        shift
    done
    for s in $want; do
        is_one_of "$s" "$STATUSES" || usage "there is no status '$s'; there are $STATUSES"
        for path in "$items/$s"/*/; do
            [ -f "$path/item.md" ] || continue
            list_one "${path%/}" "$s"
        done
    done
}

list_one() { # directory, status
    item=$1/item.md
    k=$(field "$item" kind)
    [ -z "$want_kind" ] || [ "$k" = "$want_kind" ] || return 0
    if [ -n "$want_label" ]; then
        l=$(field "$item" labels | tr -d '[] ')
        case ",$l," in *",$want_label,"*) ;; *) return 0 ;; esac
    fi
    printf '%-8s %-8s %-7s %s  %s\n' "$2" "$k" "$(field "$item" priority)" "${1##*/}" "$(field "$item" title | plain)"
}

cmd_show() {
    [ $# -eq 1 ] || usage 'show needs an id'
    find_item "$1"
    {
        cat "$dir/item.md"
        printf '\n'
        cat "$dir/thread.md"
        if [ -d "$dir/artifacts" ]; then
            printf '\nArtefacts:\n'
            (cd "$root" && find "${dir#"$root"/}/artifacts" -type f | sort)
        fi
    } | tr -d '\000-\010\013-\037\177'
}

cmd_create() {
    kind=task priority=normal labels='' assignee='' slug='' status=open body='' title='' titled=''
    while [ $# -gt 0 ]; do
        case $1 in
        --kind | --priority | --labels | --assignee | --slug | --status | --body)
            [ $# -gt 1 ] || usage "$1 needs a value"
            case $1 in
            --kind) kind=$2 ;; --priority) priority=$2 ;; --labels) labels=$2 ;; --assignee) assignee=$2 ;;
            --slug) slug=$2 ;; --status) status=$2 ;; --body) body=$2 ;;
            esac
            shift
            ;;
        --)
            shift
            [ $# -eq 1 ] && [ -z "$titled" ] || usage 'create needs one title; quote it'
            title=$1 titled=1
            ;;
        -*) usage "create knows no '$1'; a title that begins with a dash goes behind --" ;;
        *)
            [ -z "$titled" ] || usage 'create needs one title; quote it'
            title=$1 titled=1
            ;;
        esac
        shift
    done
    [ -n "$titled" ] || usage 'create needs a title'
    check_create
    read_text body "$body"
    set_now
    set_author
    take_lock
    name_item
    make_item
    printf '%s\n' "$id"
}

check_create() {
    check_line title "$title" "$MAX_TITLE"
    is_one_of "$kind" "$KINDS" || usage "there is no kind '$kind'; there are $KINDS"
    is_one_of "$priority" "$PRIORITIES" || usage "there is no priority '$priority'; there are $PRIORITIES"
    is_one_of "$status" "$STATUSES" || usage "there is no status '$status'; there are $STATUSES"
    [ -z "$assignee" ] || check_line assignee "$assignee" "$MAX_AUTHOR"
    labels=$(printf '%s' "$labels" | tr -d ' ')
    case $labels in
    *[!a-z0-9,:_-]* | ,* | *, | *,,*) usage "labels are words of a-z, 0-9, ':', '_' and '-', with commas between" ;;
    esac
    labels=$(printf '%s' "$labels" | sed 's/,/, /g')
    if [ -z "$slug" ]; then
        slug=$(printf '%s' "$title" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-' | cut -c "1-$MAX_SLUG" | sed 's/^-*//; s/-*$//')
        [ -n "$slug" ] || slug=item
    fi
    case $slug in *[!a-z0-9-]* | -* | *- | *--*) usage "the slug '$slug' is not of the form like-this-1" ;; esac
    [ "${#slug}" -le "$MAX_SLUG" ] || usage "the slug has ${#slug} bytes; at most $MAX_SLUG"
}

# The same slug in the same second gets a number: ids are unique in all three folders.
name_item() {
    stamp=$(printf '%s' "$now" | tr -d ':-' | sed 's/T/-/; s/Z$//')
    base=$slug
    n=1
    while :; do
        id=$stamp-$slug
        taken=''
        for s in $STATUSES; do
            if [ -e "$items/$s/$id" ] || [ -L "$items/$s/$id" ]; then taken=1; fi
        done
        [ -n "$taken" ] || return 0
        n=$((n + 1))
        slug=$base-$n
    done
}

make_item() {
    mkdir -p "$items/$status" "$lock/$id"
    write_item "$lock/$id/item.md"
    { printf '# Thread of %s\n' "$id" && write_event 1 "$now" "created $status" ''; } >"$lock/$id/thread.md"
    mv "$lock/$id" "$items/$status/$id"
}

cmd_comment() {
    what=comment item='' words=- given=0 plain=''
    while [ $# -gt 0 ]; do
        if [ "$1" = --role ] && [ -z "$plain" ]; then
            [ $# -gt 1 ] || usage '--role needs a value'
            is_one_of "$2" "$ROLES" || usage "there is no role '$2'; there are $ROLES"
            what=$2
            shift
        elif [ "$1" = -- ] && [ -z "$plain" ]; then
            plain=yes
        else
            given=$((given + 1))
            if [ "$given" -eq 1 ]; then item=$1; else words=$1; fi
        fi
        shift
    done
    [ "$given" -eq 1 ] || [ "$given" -eq 2 ] || usage 'comment needs an id and one text; quote it'
    speak "$item" "$words"
}

cmd_review() {
    [ $# -eq 2 ] || [ $# -eq 3 ] || usage 'review needs an id, a verdict and one text; quote it'
    is_one_of "$2" "$VERDICTS" || usage "there is no verdict '$2'; there are $VERDICTS"
    what="review $2"
    speak "$1" "${3--}"
}

speak() { # id, text or -
    find_item "$1"
    read_text text "$2"
    [ -n "$text" ] || die "an empty $what says nothing; give a text"
    set_now
    set_author
    take_lock
    find_item "$id"
    add_event "$what" "$text" "$status"
}

cmd_status() {
    [ $# -eq 2 ] || [ $# -eq 3 ] || usage 'status needs an id, a status and at most one text; quote it'
    is_one_of "$2" "$STATUSES" || usage "there is no status '$2'; there are $STATUSES"
    find_item "$1"
    read_text text "${3-}"
    move_to "$2"
}

cmd_close() {
    [ $# -eq 2 ] || usage 'close needs an id and one text that says how it was settled; quote it'
    find_item "$1"
    read_text text "$2"
    [ -n "$text" ] || die 'say how it was settled'
    move_to closed
}

# A crash before the move leaves status and folder apart: doctor names it, and the same command finishes it.
move_to() {
    set_now
    set_author
    take_lock
    find_item "$id"
    recorded=$(field "$dir/item.md" status)
    if [ "$recorded" = "$1" ]; then
        [ "$status" != "$1" ] || die "$id is $1 already"
    else
        add_event "status $recorded -> $1" "$text" "$1"
    fi
    mkdir -p "$items/$1"
    [ ! -e "$items/$1/$id" ] || die "$items/$1/$id is in the way; ./tickets.sh doctor says more"
    mv "$dir" "$items/$1/$id"
}

# ---- doctor

problem() { # path, what
    printf '%s: %s\n' "${1#"$root"/}" "$2"
    problems=$((problems + 1))
}

cmd_doctor() {
    [ $# -eq 0 ] || usage 'doctor takes no arguments'
    problems=0
    records=0
    if [ -d "$items" ]; then
        for path in "$items"/* "$items"/.[!.]* "$items"/..?*; do
            [ -e "$path" ] || [ -L "$path" ] || continue
            doctor_top "$path"
        done
        doctor_twice
        doctor_history
    fi
    [ "$problems" -eq 0 ] || die "$problems problems in $records work items"
    printf '%s work items, all well\n' "$records"
}

doctor_top() {
    case ${1##*/} in
    open | pending | closed)
        if [ -L "$1" ] || [ ! -d "$1" ]; then problem "$1" 'is not a directory'; return 0; fi
        for path in "$1"/* "$1"/.[!.]* "$1"/..?*; do
            [ -e "$path" ] || [ -L "$path" ] || continue
            doctor_item "$path" "${1##*/}"
        done
        ;;
    .lock) problem "$1" 'is left over from a tickets.sh that was killed (or one runs now); remove it' ;;
    *) problem "$1" 'does not belong here; records are in open, pending and closed' ;;
    esac
}

doctor_item() { # directory, status
    name=${1##*/}
    if [ -L "$1" ] || [ ! -d "$1" ]; then problem "$1" 'is not a directory'; return 0; fi
    if ! is_id "$name"; then problem "$1" 'is not named like 20260131-120000-a-slug'; return 0; fi
    records=$((records + 1))
    for part in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        [ -e "$part" ] || [ -L "$part" ] || continue
        case ${part##*/} in
        item.md | thread.md) [ -f "$part" ] && [ ! -L "$part" ] || problem "$part" 'is not a plain file' ;;
        artifacts) [ -d "$part" ] && [ ! -L "$part" ] || problem "$part" 'is not a directory' ;;
        *) problem "$part" 'is a stray; files go into artifacts/' ;;
        esac
    done
    doctor_artifacts "$1/artifacts"
    for part in item.md thread.md; do
        if [ ! -f "$1/$part" ] || [ -L "$1/$part" ]; then
            [ -e "$1/$part" ] || problem "$1/$part" 'is missing'
            return 0
        fi
        doctor_bytes "$1/$part"
    done
    found=$(doctor_front "$1/item.md" "$name" "$2" && doctor_thread "$1/thread.md" "$1/item.md" "$name")
    [ -n "$found" ] || return 0
    while IFS= read -r line; do
        problem "$1/${line%%:*}" "${line#*: }"
    done <<END
$found
END
}

is_id() {
    case $1 in
    *[!a-z0-9-]* | *- | *--*) return 1 ;;
    [0-9][0-9][0-9][0-9][01][0-9][0-3][0-9]-[0-2][0-9][0-5][0-9][0-6][0-9]-[a-z0-9]*) return 0 ;;
    esac
    return 1
}

doctor_artifacts() {
    [ -d "$1" ] && [ ! -L "$1" ] || return 0
    odd=$(find "$1" ! -type f ! -type d | head -n 1)
    [ -z "$odd" ] || problem "$odd" 'is neither a file nor a directory'
}

doctor_bytes() {
    [ "$(tr -d '\11\12\40-\176\200-\377' <"$1" | wc -c)" -eq 0 ] || problem "$1" 'has control characters'
    if hidden_lines <"$1" >/dev/null; then problem "$1" 'has invisible or direction-changing characters'; fi
}

# Prints `item.md: what is wrong` lines.
doctor_front() { # file, id, status of the folder
    awk -v id="$2" -v folder="$3" -v kinds="$KINDS" -v priorities="$PRIORITIES" '
        function bad(what) { print "item.md: line " NR ": " what }
        function among(word, list) { return word ~ /^[a-z-]+$/ && index(" " list " ", " " word " ") > 0 }
        function time(t) {
            return t ~ /^[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z$/
        }
        function string(s) { return s ~ /^"([^"\\]|\\"|\\\\)*"$/ }
        BEGIN { n = split("id slug title status kind priority labels created_at updated_at assignee", keys, " ") }
        NR == 1 || NR == 12 { if ($0 != "---") { bad("front matter needs --- here"); broken = 1; exit } next }
        NR > 12 { exit }
        {
            key = keys[NR - 1]
            if (index($0, key ": ") != 1) { bad("front matter needs \"" key ": \" here"); broken = 1; exit }
            value = substr($0, length(key) + 3)
            if (key == "id" && value != id) bad("the id is not the name of the directory")
            if (key == "slug" && value != substr(id, 17)) bad("the slug is not the end of the id")
            if (key == "title" && (!string(value) || value ~ /^" *"$/)) bad("the title is empty or not a quoted string")
            if (key == "status" && value != folder) bad("the status is \"" value "\" but the folder is " folder)
            if (key == "kind" && !among(value, kinds)) bad("there is no kind \"" value "\"")
            if (key == "priority" && !among(value, priorities)) bad("there is no priority \"" value "\"")
            if (key == "labels" && value !~ /^\[([a-z0-9:_-]+(, [a-z0-9:_-]+)*)?\]$/) bad("labels are not like [one, two]")
            if (key == "assignee" && !string(value)) bad("the assignee is not a quoted string")
            if (key ~ /_at$/ && !time(value)) bad(key " is not a time like 2026-01-31T12:00:00Z")
            if (key == "created_at") {
                created = value; stamp = value; gsub(/[:Z-]/, "", stamp); sub(/T/, "-", stamp)
                if (stamp != substr(id, 1, 15)) bad("created_at is not the time in the id")
            }
            if (key == "updated_at" && value < created) bad("updated_at is before created_at")
        }
        END { if (!broken && NR < 12) { NR++; bad("the front matter ends too early") } }' "$1"
}

# Prints `thread.md: what is wrong` lines: the events are replayed and must lead to what item.md says. What stands in
# the older form says nothing that could be checked; the events behind it are.
doctor_thread() { # thread, item, id
    older=0
    if is_older "$1"; then older=1; fi
    awk -v older="$older" -v time="$TIME" -v roles="$ROLES" -v id="$3" -v created="$(field "$2" created_at)" -v updated="$(field "$2" updated_at)" \
        -v status="$(field "$2" status)" -v statuses="$STATUSES" -v verdicts="$VERDICTS" '
        function bad(what) { print "thread.md: line " NR ": " what }
        function among(word, list) { return word ~ /^[a-z_-]+$/ && index(" " list " ", " " word " ") > 0 }
        older && !events && $0 !~ "^## 1 [|] " time " [|] " { next }
        NR == 1 { if ($0 != "# Thread of " id) bad("needs \"# Thread of " id "\""); next }
        $0 == "" { next }
        /^>( |$)/ { if (!events) bad("a text before the first event"); next }
        /^## / {
            events++
            parts = split($0, part, " [|] ")
            if (parts < 4) { bad("an event needs number | time | what | author"); next }
            if (part[1] != "## " events) bad("event " events " is numbered \"" substr(part[1], 4) "\"")
            t = part[2]
            if (t !~ "^" time "$") bad("not a time: " t)
            else if (t < last) bad("this event is before the one above it")
            else last = t
            if (part[4] ~ /^ *$/) bad("an event without an author")
            words = split(part[3], word, " ")
            if (events == 1 && !older) {
                if (word[1] != "created" || words != 2 || !among(word[2], statuses)) bad("the first event must be \"created STATUS\"")
                if (t != created) bad("the first event is not of created_at")
                now = word[2]
            } else if (word[1] == "status" && words == 4 && word[3] == "->") {
                if (word[2] != now && !(older && now == "")) bad("moves from " word[2] " but was " now)
                if (!among(word[4], statuses)) bad("there is no status " word[4])
                now = word[4]
            } else if (!((words == 1 && among(part[3], roles)) || (word[1] == "review" && words == 2 && among(word[2], verdicts))))
                bad("there is no event \"" part[3] "\"")
            next
        }
        { bad("neither an event nor a text behind \">\"") }
        END {
            if (!events && !older) { bad("has no event"); exit }
            if (now != status && !(older && now == "")) bad("the events lead to " now " but item.md says " status)
            if (updated < last) bad("the last event is later than updated_at in item.md")
        }' "$1"
}

doctor_twice() {
    for path in "$items"/open/*/ "$items"/pending/*/; do
        path=${path%/}
        for other in pending closed; do
            [ "${path%/*}" != "$items/$other" ] || continue
            [ ! -d "$items/$other/${path##*/}" ] || problem "$path" "exists in $other too; keep the newer one"
        done
    done
}

# Against the last commit: what it has of a thread must be the beginning of the thread now.
doctor_history() {
    command -v git >/dev/null 2>&1 || return 0
    git -C "$root" rev-parse -q --verify HEAD >/dev/null 2>&1 || return 0
    list=$(cd "$root" && git ls-tree -r --name-only HEAD work-items/ | grep '/thread\.md$') || return 0
    while IFS= read -r old; do
        name=${old%/thread.md}
        name=${name##*/}
        thread=''
        for s in $STATUSES; do
            [ ! -f "$items/$s/$name/thread.md" ] || thread=$items/$s/$name/thread.md
        done
        if [ -z "$thread" ]; then problem "$root/$old" 'was committed and is gone; items are closed, not deleted'; continue; fi
        size=$(cd "$root" && git cat-file -s "HEAD:./$old")
        was=$(cd "$root" && git cat-file blob "HEAD:./$old" | cksum)
        [ "$was" = "$(dd bs="$size" count=1 <"$thread" 2>/dev/null | cksum)" ] ||
            problem "$thread" 'was rewritten since the last commit; threads only grow'
    done <<END
$list
END
}

trap drop_lock EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

find_root
items=$root/work-items
command=${1:-help}
[ $# -eq 0 ] || shift
case $command in
help | -h | --help) help ;;
list | show | create | comment | review | status | close | doctor) "cmd_$command" "$@" ;;
*) usage "there is no command '$command'" ;;
esac
