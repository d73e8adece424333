#!/bin/sh
# Every night: take in what is new, and end with status 1 when the model drifted. Meant for cron; takes the folder of
# predictions as its first word, and keeps its state and its reports in the second.
set -eu
predictions=$1 kept=$2
mkdir -p "$kept"
fourrates detect "$predictions" --state "$kept/model.state" --report "$kept/report.html" --fail-on drift
