#!/usr/bin/env bash
# Every check that client.c makes, for each ring to make a client, a server and its loop, with and without
# librunnel-rpc: the prints are the same, and as many checks were made as there are. test_programs.sh has a core of
# them. Finds the build in $RUNNEL_BUILD and the command in $RUNNEL. Exits 77 if something is missing.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/head.sh"

stream=21572 datagram=4542 # checks of a client: what a datagram does not carry is left out
same both run clnttcp all $stream
same both run clntudp all $datagram
same tli select tlitcp all $stream
same tli epoll tliudp all $datagram
same vc epoll2 vc all $stream
same dg poll dg all $datagram
same bufcreate select bufcreate all $datagram
same unix poll clntunix all $stream
same both daemon clnttcp all $stream
exit "$failed"
