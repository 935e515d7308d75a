#!/usr/bin/env bash
# Measures how long somebody waits who has just cloned the repository and runs make demo: until the first picture of
# the product, which is the preview, and until the end. The clone has an empty build cache and no control plane; the
# modules that this machine has are used.
#
# It prints seconds by the clock, which say something on a quiet machine only, and of processor time. It prints MISSED, and
# exits with 1, if one of the goals was missed.
set -euo pipefail
readonly first_goal=180 end_goal=467
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=$(mktemp -d)
trap 'chmod -R u+w "$folder" && rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM # bash leaves the folder behind otherwise
git clone -q . "$folder/clone"
GOMODCACHE=$(go env GOMODCACHE)
export GOMODCACHE GOCACHE="$folder/build" XDG_CACHE_HOME="$folder/cache"
unset KUBEBUILDER_ASSETS

cd "$folder/clone"
first=
SECONDS=0
while IFS= read -r line; do
	printf '%4d s  %s\n' "$SECONDS" "$line"
	case $line in
	Preview,*) first=${first:-$SECONDS} ;;
	esac
done < <(exec make demo 2>&1)
wait $!
[ -n "$first" ] || { echo "first-sight.sh: there was no preview" >&2; exit 1; }
end=$SECONDS
echo "first picture after $first s, end after $end s (goal: $first_goal s, $end_goal s)"
times
if [ "$first" -gt "$first_goal" ] || [ "$end" -gt "$end_goal" ]; then
	echo "MISSED: a goal for the first sight" >&2
	exit 1
fi
