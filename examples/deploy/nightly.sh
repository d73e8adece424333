#!/bin/sh
# Every night: read new rows, and end with status 1 if a drift was found, while one is open, or without new rows. Meant for
# cron: the folder of predictions is the first argument, the folder for state and report the second;
# options for detect follow, as in nightly.sh predictions kept --time booked_at --by country
set -eu
predictions=$1 kept=$2
shift 2
mkdir -p "$kept"
fourrates detect "$predictions" --state "$kept/model.state" --report "$kept/report.html" --fail-on drift --fail-on open --fail-on no-events "$@"
