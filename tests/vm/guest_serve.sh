#!/bin/sh
# shellcheck disable=SC2119 # functions of tests/vm/init
# Machine b of a pair: starts agents for the jobs of machine a.
host || exit 1
network
offer_cards
serve_agents
