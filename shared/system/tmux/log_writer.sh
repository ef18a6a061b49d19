# sh log_writer.sh LOG BYTES KEEP: appends its input to LOG, and moves it to LOG.1 before it is larger than so many bytes.
#
# tmux runs one for each logged pane. Nothing is lost at a rotation: `dd` is told how many blocks it may read, and what
# comes meanwhile waits in the pipe. Without a block size for the output, each read is written at once, however short.

write_log() {
    log=$1 bytes=$2 keep=$3 least=64
    [ "$bytes" -ge "$least" ] || bytes=$least # with less it would rotate for ever, and read nothing
    block=$((bytes / 640))
    [ "$block" -lt 16384 ] || block=16384
    [ "$block" -gt 0 ] || block=1
    while :; do
        size=0
        [ ! -f "$log" ] || size=$(wc -c < "$log") || return
        blocks=$(((bytes - size) / block))
        if [ "$blocks" -lt "$least" ]; then
            rotate
            blocks=$((bytes / block))
        fi
        said=$(dd bs="$block" count="$blocks" 2>&1 >> "$log") || return
        said=${said%% records in*} # "3+5 records in", perhaps after a warning
        said=${said##*[!0-9+]}
        [ $((${said%+*} + ${said#*+})) -eq "$blocks" ] || return 0 # the input has ended
    done
}

rotate() {
    older=$keep
    while [ "$older" -gt 1 ]; do
        newer=$((older - 1))
        [ ! -e "$log.$newer" ] || mv -f -- "$log.$newer" "$log.$older"
        older=$newer
    done
    if [ "$keep" -gt 0 ]; then mv -f -- "$log" "$log.1"; else rm -f -- "$log"; fi
    : >> "$log"
}

umask 077
exec 2> /dev/null
export LC_ALL=C
write_log "$@"
