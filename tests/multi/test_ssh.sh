#!/usr/bin/env bash
# Jobs whose agents are started over ssh: with an sshd of the test's own on the loopback interface (its own directory,
# configuration, keys and port) where there is one, and with a stand-in for ssh that runs the command line through a
# shell, as an sshd does.
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "$0")/../support/test.sh"
daemon=
# shellcheck disable=SC2317 # the trap calls it
clean_up() {
    [ -n "$daemon" ] && kill "$daemon" 2>/dev/null
    rm -rf "$dir"
}
chmod 700 "$dir"
cd "$dir" || exit 1

job() { # arguments of runnel run...
    timeout -k 5 60 "$runnel" run --timeout 50 "$@"
}

# The stand-in: `ssh OPTION... -- HOST COMMAND`. What a login shell prints comes before what the command says.
cat >stand-in <<'END'
#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $2 in
down) echo "ssh: connect to host down port 22: No route to host" >&2; exit 255 ;;
bare) exec sh -c 'exec /nowhere/runnel agent' ;;
slow) sleep 100 ;;
other) echo 'runnel-agent 99 9.9.9'; sleep 5; exit 0 ;;
older) echo "runnel-agent $(sed 's/[.][0-9]* /.1 /' version)"; sleep 5; exit 0 ;;
rude) head -c 3000 /dev/urandom; echo; exec cat /dev/urandom ;;
liar) echo "runnel-agent $(cat version)"; exec head -c 100000 /dev/urandom ;;
mute) echo "runnel-agent $(cat version)"; exec sleep 3 ;;
far) cd / ;;
esac
echo 'Welcome to this machine! You have mail.'
echo 'and the last line has no end: runnel-agent'
cd / && exec env -i PATH="$PATH" sh -c "$3"
END
chmod +x stand-in

same() { # TITLE HOSTS: what every way to start agents has to do
    local title=$1 hosts=$2
    RUNNEL_SSH=$ssh job --hosts "$hosts" -n 4 --tag-output "$build/examples/hello" >out 2>said </dev/null
    ok "$title: starts a program" $?
    # shellcheck disable=SC2016,SC1003 # the ranks' shell is to see it
    mkdir -p "it's a \$HOME; folder" && (cd "it's a \$HOME; folder" && RUNNEL_SSH=$ssh ODD=$'two\nlines' \
        job --hosts "$hosts" -n 1 sh -c 'printf "%s|" "$PWD" "$ODD" "$@"' x 'a b' '' "it's" '$(id)' '*' '"' '\' ';' \
        >../out 2>../said </dev/null)
    printf '%s|' "$dir/it's a \$HOME; folder" $'two\nlines' 'a b' '' "it's" "\$(id)" '*' '"' "\\" ';' | cmp - out >said
    ok "$title: folder, environment and arguments arrive as they are" $?
    seq 100000 >long
    RUNNEL_SSH=$ssh job --hosts "$hosts" -n 2 cat <long >out 2>said && cmp long out >said
    ok "$title: input and output" $?
    RUNNEL_SSH=$ssh job --hosts "$hosts" -n 4 sh -c 'exit 9' >said 2>&1 </dev/null
    [ $? = 9 ] && grep -q 'exited with status 9' said
    ok "$title: the exit status" $?
    RUNNEL_SSH=$ssh job --hosts "$hosts" -n 2 ./none >said 2>&1 </dev/null
    [ $? = 127 ] && grep -qE "^runnel: host [a-z0-9.]+: there is no program './none'" said
    ok "$title: a program that is not there, with the host" $?
    RUNNEL_SSH=$ssh job --hosts "$hosts" --agent /nowhere/runnel -n 2 true >said 2>&1 </dev/null
    [ $? = 71 ] && grep -qE "^runnel: host [a-z0-9.]+: there is no /nowhere/runnel on it" said
    ok "$title: a host without runnel, with host and path" $?
    cp "$runnel" "it's a \$HOME; folder/runnel"
    RUNNEL_SSH=$ssh job --hosts "$hosts" --agent "$dir/it's a \$HOME; folder/runnel" -n 2 true >said 2>&1 </dev/null
    ok "$title: a path that a shell would take apart" $?
}
ssh=$dir/stand-in
same 'stand-in' here,there

RUNNEL_SSH=$ssh job --hosts here,there -n 4 "$build/tests/multi-fm_alltoall" 1 3 >said 2>&1 </dev/null
ok 'messages between hosts reached over ssh' $?

refused() { # NAME HOST PATTERN
    local name=$1
    RUNNEL_SSH=$ssh job --hosts "here,$2" -n 2 true >said 2>&1 </dev/null
    [ $? = 71 ] && [ "$(grep -c '^runnel' said)" = 1 ] && grep -qE "^runnel: host $2: $3" said
    ok "$name" $?
}
version=$("$runnel" agent </dev/null 2>/dev/null | sed -n 's/^runnel-agent //p')
echo "$version" >version
refused 'a host that cannot be reached' down '.*stand-in cannot reach it: .*No route to host; .* has to work without a password'
refused 'no runnel there: what its shell says' bare 'there is no .* on it [(].*/nowhere/runnel.*[)]: install the same release'
refused 'another release there' other ".* is of protocol and release 99 9.9.9, this command of $version: install one release"
refused 'this release there, built when packets were others' older \
    ".* is of protocol and release $(sed 's/[.][0-9]* /.1 /' version), this command of $version: install one release"
refused 'an agent that talks garbage' rude 'what its agent says is not understood'
refused 'an agent that greets and talks garbage' liar 'what its agent says is not understood'
refused 'an agent that ends' mute 'its agent has ended'
for missing in 'no-such-ssh -p 22' "'/nowhere/s s' -p 22"; do
    RUNNEL_SSH=$missing job --hosts a,b true >said 2>&1 </dev/null
    [ $? = 71 ] && grep -qE '^runnel: host [ab]: cannot start (no-such-ssh|/nowhere/s s): No such file' said
    ok "a command with words that is not here: $missing" $?
done
RUNNEL_SSH=/nowhere/ssh job --hosts a,b true >said 2>&1 </dev/null
[ $? = 71 ] && grep -q '^runnel: host [ab]: cannot start /nowhere/ssh' said
ok 'no ssh here' $?

# Hosts that go while the ranks run.
RUNNEL_SSH=$ssh "$runnel" run --timeout 100 --keep-going --hosts here,there -n 2 sh -c 'echo ready; while [ ! -e go ]; do sleep 0.05; done; echo over' \
    >said 2>&1 </dev/null &
job=$!
for ((i = 0; i < 600; i++)); do
    [ "$(grep -c ready said)" = 2 ] && break
    sleep 0.05
done
pgrep -P $job | tail -n 1 | xargs -r kill -KILL
for ((i = 0; i < 600; i++)); do
    grep -q 'is lost' said && break
    sleep 0.05
done
touch go # the other is still there then
wait $job
[ $? = 71 ] && [ "$(grep -c over said)" = 1 ] && grep -q '^runnel: host there, with rank 1, is lost: its agent was' said
ok 'the way to a host breaks: its ranks are killed, the others go on' $?

run() { # whether one of these processes has not ended; what nobody has waited for yet has
    local p state
    for p in "$@"; do
        state=$(sed 's/.*) //' "/proc/$p/stat" 2>/dev/null)
        [ -n "$state" ] && [ "${state:0:1}" != Z ] && return 0
    done
    return 1
}
# killed NAME LAUNCHER: it is killed, and its ranks, whose ids are in the file said, end: by the connection's end, since by
# silence it would take 20 s. The hosts are this one, which has all addresses of the launcher's own.
killed() {
    local from i ranks
    mapfile -t ranks < <(grep -xE '[0-9]+' said)
    from=$(date +%s%N)
    kill -KILL "$2"
    for ((i = 0; i < 600; i++)); do
        run "${ranks[@]}" || break
        sleep 0.02
    done
    ms=$((($(date +%s%N) - from) / 1000000))
    { wait "$2"; } 2>/dev/null
    [ ${#ranks[@]} = 2 ] && [ "$i" -lt 600 ]
    ok "$1: the launcher is killed, and its ranks end before its silence is seen ($ms ms)" $?
}
: >said
# shellcheck disable=SC2016 # the ranks' shell is to see it
RUNNEL_SSH=$ssh "$runnel" run --hosts here,there -n 2 sh -c 'echo $$; exec sleep 60' >said 2>&1 </dev/null &
for ((i = 0; i < 600; i++)); do
    [ "$(grep -c . said)" = 2 ] && break
    sleep 0.05
done
killed 'stand-in' $!

# Strangers before the agent.
wrong=0
for what in '' '\x00' 'runnel-agent 1 0.1.0\n' '\x01\x00\x00\x00\xff\xff\xff\x7f' '\x01\x00\x00\x00\x04\x00\x00\x00abcd'; do
    # shellcheck disable=SC2059 # it is a format
    printf "$what" | timeout 60 "$runnel" agent >said 2>&1
    [ $? = 64 ] || wrong=1
done
head -c 100000 /dev/urandom | timeout 60 "$runnel" agent >said 2>&1
[ $? = 64 ] && [ $wrong = 0 ]
ok 'an agent that hears garbage ends' $?

if [ -x /usr/sbin/sshd ] && command -v ssh >/dev/null && command -v ssh-keygen >/dev/null; then
    ssh-keygen -q -t ed25519 -N '' -f host_key && ssh-keygen -q -t ed25519 -N '' -f key && cp key.pub keys
    port=
    mkdir -p /run/sshd 2>/dev/null # a root's sshd wants it, empty
    for _ in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 10000))
        cat >sshd_config <<END
Port $port
ListenAddress 127.0.0.1
HostKey $dir/host_key
PidFile $dir/pid
AuthorizedKeysFile $dir/keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
END
        /usr/sbin/sshd -D -e -f "$dir/sshd_config" 2>sshd_said &
        daemon=$!
        for ((i = 0; i < 400; i++)); do
            [ -s pid ] && break 2
            kill -0 $daemon 2>/dev/null || break
            sleep 0.05
        done
    done
    printf '#!/bin/sh\nexec ssh -F none -oIdentityFile=%s -oUserKnownHostsFile=%s -oStrictHostKeyChecking=no -p %d "$@"\n' \
        "$dir/key" "$dir/known" $port >own-ssh
    chmod +x own-ssh
    if ! ./own-ssh -oBatchMode=yes 127.0.0.1 true >said 2>&1; then
        echo "ok - an sshd of its own # SKIP it does not let us in: $(tail -n 1 sshd_said) $(tail -n 1 said)"
    else
        ssh=$dir/own-ssh
        same 'sshd' 127.0.0.1,localhost
        RUNNEL_SSH=$ssh job --hosts 127.0.0.1,localhost -n 4 "$build/tests/multi-fm_alltoall" 1 3 >said 2>&1 </dev/null
        ok 'sshd: messages' $?
        : >said
        RUNNEL_SSH=$ssh "$runnel" run --hosts 127.0.0.1,localhost -n 2 sh -c 'echo $$; exec sleep 60' >said 2>&1 </dev/null &
        for ((i = 0; i < 600; i++)); do
            [ "$(grep -c . said)" = 2 ] && break
            sleep 0.05
        done
        killed 'sshd' $!
    fi
else
    echo 'ok - an sshd of its own # SKIP openssh-server is not installed'
fi
exit "$failed"
