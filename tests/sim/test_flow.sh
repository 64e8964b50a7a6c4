#!/usr/bin/env bash
# The figures of whole endpoints on virtual hosts, over short transfers: none falls below its bound, which is a little
# worse than what such short ones reach. Virtual time: the same on every machine.
set -u
runnel=${RUNNEL:?the runnel command}
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "$(dirname "$runnel")/.." && pwd)
if "$tree/scripts/figures-flow" "$build" quick; then
    echo "ok - figures of whole endpoints"
else
    echo "not ok - figures of whole endpoints"
    exit 1
fi
