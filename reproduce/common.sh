# shellcheck shell=bash
# What the five scripts share: options, steps that are run once, files that commands read.
#
#   reproduce/PAPER.sh                 from nothing to the paper's tables
#   reproduce/PAPER.sh --dry-run       print the files, commands, GPU hours and sizes, and stop
#   reproduce/PAPER.sh --small         the same commands on generated data with small settings
#   reproduce/PAPER.sh --work FOLDER   write everything there (default: reproduced/PAPER)
#
# A finished step is not run again, an interrupted one goes on where it stopped: after Ctrl-C, a
# full disk or an error, start the script again. WORKERS is the number of processes that read text.
set -euo pipefail

REPRODUCE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PAPER=$(basename "$0" .sh)
SMALL=false DRY_RUN=false WORK=
while [ $# -gt 0 ]; do
    case $1 in
        --small) SMALL=true ;;
        --dry-run) DRY_RUN=true ;;
        --work) WORK=${2:?--work needs a folder}; shift ;;
        *)
            sed -n "4,10s/^# \{0,1\}//; s/PAPER/$PAPER/; 4,10p" "${BASH_SOURCE[0]}"
            [ "$1" = --help ] || [ "$1" = -h ] && exit
            printf '\n%s: there is no such option.\n' "$1" >&2
            exit 2
            ;;
    esac
    shift
done
WORK=${WORK:-reproduced/$PAPER$(if $SMALL; then echo -small; fi)}
WORKERS=${WORKERS:-$(if $SMALL; then echo 1; else nproc; fi)}
PYTHONPATH=$(dirname "$REPRODUCE")${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
if [ -z "${VIRTUAL_ENV:-}" ] && [ -x "$REPRODUCE/../.venv/bin/isoglot" ]; then
    PATH=$(cd "$REPRODUCE/../.venv/bin" && pwd):$PATH  # what `make` has installed
fi
if ! python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("isoglot") is None)'; then
    echo "$0: $(command -v python) has no isoglot. Activate its environment: . .venv/bin/activate" >&2
    exit 1
fi
declare -A SMALL_ARGUMENTS=()
if $DRY_RUN; then
    WORK=$(mktemp -d)
    trap 'rm -rf "$WORK"' EXIT
fi
mkdir -p "$WORK"
cd "$WORK"
mkdir -p .steps tests
if $SMALL && ! $DRY_RUN; then
    export OMP_NUM_THREADS=1  # more threads only wait for each other
    exec 4>&1
    coproc WARM { exec python -m reproduce.warm 3>&1 1>&4; }
fi

small() {  # small VERB ARGUMENT...: with --small, every `step VERB` has these arguments too
    SMALL_ARGUMENTS[$1]="${*:2}"
}

either() {  # either FULL SMALL: the first, or with --small the second
    if $SMALL; then echo "$2"; else echo "$1"; fi
}

models() {  # models NAME...: of the Hugging Face hub; with --small, folders of these names
    if $SMALL && ! $DRY_RUN; then once "models $* --models"; fi
}

file() {  # file NAME <<END: a file that a command reads
    if $DRY_RUN; then
        printf '%s:\n' "$1"
        sed -n -e 's/^/    /; 1,14p; 15s/.*/    .../p' | cut -c 1-160
        return
    fi
    cat > "$1.new"
    if cmp -s "$1.new" "$1"; then rm "$1.new"; else mv "$1.new" "$1"; fi
}

step() {  # step VERB ARGUMENT...: a command of isoglot; IN and OUT name its input and output
    local arguments=("$@")
    # shellcheck disable=SC2206 # words
    if $SMALL; then arguments+=(${SMALL_ARGUMENTS[$1]:-}); fi
    once isoglot "${arguments[@]}"
    if [ "$1" = pretrain ] && ! $DRY_RUN && [ ! -e "$(after --out "$@")/model/config.json" ]; then
        echo "stopped; start $0 again to go on" >&2
        exit 130
    fi
}

once() {  # once COMMAND ARGUMENT...: run a command, unless it was finished before
    local shown="$*${IN:+ < $IN}${OUT:+ > $OUT}" finished status
    if $DRY_RUN; then
        printf '%s\n' "$shown" >> .steps/plan
        return
    fi
    finished=.steps/$(printf '%s' "$shown" | cksum | tr ' ' -)
    if [ -e "$finished" ]; then return; fi
    printf '\n+ %s\n' "$shown"
    if $SMALL; then  # in a process that has imported the libraries, see warm.py
        printf '%s\n' "$shown" >&"${WARM[1]}"
        read -r status <&"${WARM[0]}"
        if [ "$status" != 0 ]; then exit "$status"; fi
    elif [ -n "${OUT:-}" ]; then
        "$@" < "${IN:-/dev/null}" > "$OUT"
    else
        "$@"
    fi
    printf '%s\n' "$shown" > "$finished"
}

after() {  # after OPTION ARGUMENT...: the argument that follows an option
    local option=$1 previous= argument
    for argument in "${@:2}"; do
        if [ "$previous" = "$option" ]; then echo "$argument"; return; fi
        previous=$argument
    done
}

finish() {  # the paper's tables, with the numbers that came out beside the printed ones
    local options=("$PAPER")
    if $SMALL; then options+=(--small); fi
    if $DRY_RUN; then
        python -m reproduce.plan "${options[@]}" < .steps/plan
        return
    fi
    if $SMALL; then
        eval "exec ${WARM[1]}>&-"  # no command follows
        wait "$WARM_PID"
    fi
    python -m reproduce.table "${options[@]}" | tee tables.md
    printf '\ntables: %s/tables.md\nreport: %s/report.html\n' "$PWD" "$PWD"
}

# --- where `isoglot fetch` and `isoglot knowledge extract` put their files ---------------------

sorted() {  # sorted LANGUAGE LANGUAGE: the name of a pair in OPUS
    printf '%s\n' "$1" "$2" | sort | paste -sd -
}

moses() {  # moses CORPUS LANGUAGE LANGUAGE: the two files of a corpus of OPUS
    local place
    place="data/opus/$1/*/$1.$(sorted "$2" "$3")"
    echo "['$place.$2', '$place.$3']"
}

cc100() {
    echo "data/cc100/$(if [ "$1" = zh ]; then echo zh-Hans; else echo "$1"; fi).txt.xz"
}

dump() {  # dump LANGUAGE: its Wikipedia, whose database may have another name
    local database=$1
    case $1 in nan) database=zh_min_nan ;; yue) database=zh_yue ;; be_tarask) database=be_x_old ;; esac
    echo "data/wikipedia-dump/${database}wiki-latest-pages-articles-multistream.xml.bz2"
}

extracted() {
    echo "tables/text/$1.txt.gz"
}

opus_names() {  # opus_names CORPUS/LANGUAGE...: what to fetch for translations into English
    local one
    for one in "$@"; do echo "opus:${one%/*}/$(sorted en "${one#*/}")"; done
}

opus_sources() {  # opus_sources CORPUS/LANGUAGE...: the same as sources of a prepare file
    local corpus one
    for corpus in $(printf '%s\n' "${@%/*}" | sort -u); do
        printf '  %s:\n    kind: pairs\n    format: moses\n    files:\n' "${corpus,,}"
        for one in "$@"; do
            if [ "${one%/*}" = "$corpus" ]; then
                echo "      en-${one#*/}: $(moses "$corpus" en "${one#*/}")"
            fi
        done
    done
}
