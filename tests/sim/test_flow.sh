#!/usr/bin/env bash
# The figures of whole endpoints on virtual hosts, over short transfers: none falls below its bound, which is a little
# worse than what such short ones reach. Virtual time: the same on every machine.
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
check "figures of whole endpoints" "$tree/scripts/figures-flow" "$(dirname "$runnel")/.." quick
exit "$failed"
