#!/usr/bin/env bash
# Runs the checks and tests of the repository in stages:
#
#	test/stages.sh               what make test runs
#	test/stages.sh unit fuzz     some of them, one after the other
#
# Without names there are two lanes side by side: one computes, the other mostly waits for a
# control plane. The first yields the processors to the second, whose tests have deadlines.
# A stage that fails keeps no other from running. A test that fails is run a second time, if it is one of
# a few and raced with nothing: the machine may have been busy with another lane. What passed only then is
# listed before the last line, which is the sum of all tests:
#
#	N passed, N failed, N skipped
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

computing='cue generated modules build lint unit race sweep fuzz'
waiting='plane live e2e'

# Packages whose tests start a control plane, with all that they wait for.
cluster='./test/e2e ./test/rights ./test/attack ./test/demo/live ./test/docs/play ./test/scale'
# Packages that have a stage of their own, beside those.
plane='./test/controlplane/...'
install='./test/install'
# Packages that run things at the same time; the others have nothing that could race.
race='./cmd/operetta ./engine/admission ./engine/capsule ./engine/cluster ./engine/compile ./engine/controller ./engine/controller/metrics ./engine/controller/watch ./engine/dryrun
	./engine/dryrun/diff ./engine/evaluate ./engine/explain ./engine/graph/picture ./engine/history ./engine/migration ./engine/ownership ./engine/packages ./engine/plan ./engine/program ./engine/reconcile ./engine/redact
	./engine/registry ./engine/rollout ./engine/shadow ./engine/source ./engine/ui ./engine/worker ./schemas ./test/architecture ./test/demo ./test/eval ./test/harness ./test/internal/binary ./test/internal/child ./test/internal/gotool
	./test/internal/screen ./test/machine ./test/mutate ./test/mutate/mutant ./test/registrytest/cmd/registry'
# Packages whose tests run in memory, and here on an API server.
live='./engine/cluster ./engine/rollout'
# Tests of engine/reconcile that go through every crash here, and through some in other stages.
sweeps='^Test(A1A2|A3Hooks|A3Leaks|A3Policies|A4|B1)'
# Tests that compare templates and workers with CUE: 6,000 sessions of packages here, and 14,000 of forms. Each
# has an evaluator of its own, so there is nothing that could race. The stages that leave out what these two patterns name
# leave it to the stage sweep, so no other package may have a test with such a name.
templates='^Test(TemplatesSayWhatCUESays|EveryFormSaysWhatCUESays|WorkersReturnWhatCUEReturns|NoSchemaLetsAValuePassThatBreaksIt|NoDefinitionLetsAValuePassThatBreaksIt|NoValuePassesThatBreaksAForm)$'
# Packages with tests of these two patterns.
swept='./engine/reconcile ./engine/evaluate ./test/eval'
# Tests that take minutes when they are told to.
long='^Test(A1OperatorThatDies|AttackForgedMarks|Cosign|D2|E3|E6OfTwo|F30Objects|Hostile|MostFaultsThatArePut)'
# marked prints a pattern of the tests that call a function of test/machine.
marked() {
	local names
	names=$(git grep -l "machine\.$1(t)" -- '*_test.go' |
		xargs awk '/^func Test/ { sub(/\(.*/, "", $2); name = $2 } /^\tmachine\.'"$1"'\(t\)$/ { print name }' | sort -u | paste -s -d '|')
	echo "^($names)\$"
}
# Tests that say that there is nothing that could race. They take seconds.
serial=$(marked Serial)
# Tests on a control plane that repeat at length, or with another package, what shorter ones say as well.
thorough=$(marked Thorough)
# Scripts that say nothing new about what runs at the same time, where each command costs seconds: they are
# about what is printed, and one that is not listed runs with the race detector. What they run at the same time, such
# as a dry run or fetching modules, has tests of its package with it.
printing='^TestScripts/(.+_.+|colour|crd|dependencies|dryrun|graph|import|init|inputs|install|overlay|plan|push|rbac|render|replay|report|resource|scope|secrets|test|usage|version|vet|why)$'
# How long each fuzz target is fed: time to run what the corpus has, and some hundred thousand inputs more, of which
# each run keeps the interesting ones for the next. Whoever changes a decoder gives it more, and so does the stage long.
fuzz_time=${OPERETTA_FUZZ_TIME:-2s}
long_fuzz_time=${OPERETTA_FUZZ_TIME:-2m}
# In a lane there is the stage lint as well, and go vet is one of the linters. go test would vet each package once more,
# with the race detector from scratch.
vetted=${OPERETTA_LANE:+-vet=off}
# Whoever names a stage with a control plane wants its tests to run, and go test cannot see whether somebody's cluster has changed.
anew=-count=1
[ -z "${OPERETTA_LANE:-}" ] || [ -n "${OPERETTA_TEST_KUBECONFIG:-}" ] || anew=
# How long the tests of a package may take. The limit of go test, ten minutes, is for a machine that does nothing else, and a
# slow one has two lanes.
patience=30m
# The garbage collector takes a third of the time of what evaluates much, and there is memory.
collector=GOGC=400
# All is compiled as the binary is, or each stage would compile again what others did, and a clone in another
# folder all of it. The race detector needs C, and compiles for itself.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath"

# shellcheck disable=SC2086,SC2046 # lists of packages are several words

stage_cue() {
	local dirs
	dirs=$(git ls-files -co --exclude-standard '*.cue' | grep -vE '(^|/)(testdata|cue\.mod)/' | xargs -n 1 dirname | sort -u | sed 's,^,./,')
	go tool cue fmt --check $dirs && go tool cue vet -c=false $dirs
}
stage_generated() { go -C schemas/internal/k8sgen run . -check; }
stage_modules() {
	local failed=0
	go mod tidy -diff || failed=1
	go -C schemas/internal/k8sgen mod tidy -diff || failed=1
	go -C test/promql mod tidy -diff || failed=1
	go -C test/helm mod tidy -diff || failed=1
	go -C test/cosign mod tidy -diff || failed=1
	go -C test/krew mod tidy -diff || failed=1
	go -C test/olm mod tidy -diff || failed=1
	go_test "$install" $vetted -timeout=$patience || failed=1
	return $failed
}
stage_lint() { make lint; }
stage_build() { make build; }
stage_unit() {
	local -x $collector
	local all failed=0
	all=$(go list ./... | grep -vxF "$(go list $cluster $plane $install)")
	if [ -n "${OPERETTA_LANE:-}" ]; then
		# A lane has the stages that run the other tests of these packages: race with the race detector, and
		# sweep at full length. Without them, all run here, with a sample of each sweep.
		local rest
		rest=$(git grep -l 'machine\.Serial(t)' -- $(printf '%s/*_test.go ' $race) | xargs -n 1 dirname | sort -u | sed 's,^,./,')
		go_test "$rest" $vetted -timeout=$patience -run "$serial|$printing" -skip "$templates" || failed=1
		all=$(grep -vxF "$(go list $race)" <<<"$all")
	fi
	go_test "$all" $vetted -timeout=$patience || failed=1
	(cd schemas/internal/k8sgen && go_test ./...) || failed=1
	return $failed
}
stage_race() {
	local -x $collector CGO_ENABLED=1
	go_test "$race" $vetted -timeout=$patience -race -skip "$sweeps|$templates|$serial|$printing"
}
stage_sweep() {
	local -x $collector OPERETTA_TEST_SWEEP=all OPERETTA_TEMPLATE_SESSIONS=${OPERETTA_TEMPLATE_SESSIONS:-6000}
	go_test "$swept" $vetted -timeout=$patience -run "$sweeps|$templates"
}
stage_fuzz() {
	local targets failed=0
	targets=$(git grep -oE '^func Fuzz[A-Za-z0-9]*' -- '*_test.go' | sed -E 's,/[^/]*:func , ,' | sort -u)
	cut -d ' ' -f 1 <<<"$targets" | sort -u |
		xargs -P "$(getconf _NPROCESSORS_ONLN)" -I '{}' go test -c -ldflags=-s -fuzz=Fuzz -o "$results/fuzzers/{}/" './{}' || failed=1
	export fuzz_time cache
	cache=$(go env GOCACHE)/fuzz/$(go list -m)
	# A target may take what others leave to it: the time is what is set, and what it finds is kept.
	export -f feed
	xargs -P $((2 * $(getconf _NPROCESSORS_ONLN))) -n 2 bash -c 'feed "$@"' feed <<<"$targets" || failed=1
	return $failed
}
stage_plane() { go run ./test/controlplane/cmd/controlplane build && go_test "$plane" $vetted -timeout=20m; }
stage_live() { OPERETTA_TEST_LIVE=yes go_test "$live" $vetted $anew -timeout=$patience; }
# What hostile tenants do is a load for the whole machine, so it comes after the others. It also looks at the memory of
# operators, which therefore have the garbage collector of production there.
# Results are kept while nothing but documents has changed (test/internal/testcache).
stage_e2e() {
	local failed=0
	(
		export $collector
		format=testname go_test "${cluster/.\/test\/attack/}" $vetted $anew -p=2 -timeout=30m -skip "$thorough"
	) || failed=1
	format=testname go_test ./test/attack $vetted $anew -timeout=30m -skip "$thorough" || failed=1
	return $failed
}
stage_long() {
	local failed=0 fuzz_time=$long_fuzz_time
	OPERETTA_TEST_LONG=yes go_test './engine/registry ./test/e2e ./test/attack ./test/check' -count=1 -p=1 -timeout=30m -run "$long" || failed=1
	(
		export $collector
		format=testname go_test "${cluster/.\/test\/attack/}" -count=1 -p=2 -timeout=60m -run "$thorough"
	) || failed=1
	format=testname go_test ./test/attack -count=1 -timeout=30m -run "$thorough" || failed=1
	(
		export $collector OPERETTA_TEMPLATE_SESSIONS="${OPERETTA_TEMPLATE_SESSIONS:-100000}"
		go_test "$swept" -timeout=3h -run "$templates"
	) || failed=1
	stage_fuzz || failed=1
	return $failed
}

gotestsum=$PWD/bin/gotestsum

# go_test runs go test on a list of packages with the flags that follow, notes the result of each test, and
# shows packages or tests as they end and all that failed. Where ten or fewer fail, they run again, each alone.
go_test() {
	local packages=$1
	shift
	# The format testname shows what a failed test printed at once, the other one at the end.
	local hidden=skipped
	[ "${format:-pkgname}" = pkgname ] || hidden=skipped,output
	local output
	output=$(mktemp "$results/outputXXXXXX")
	"$gotestsum" --jsonfile-timing-events "$(mktemp "$results/$stage.XXXXXX")" --jsonfile "$output" --format "${format:-pkgname}" --format-hide-empty-pkg \
		--hide-summary "$hidden" --rerun-fails=1 --rerun-fails-max-failures=10 --rerun-fails-run-root-test \
		--rerun-fails-abort-on-data-race --packages "$packages" -- "$@" && return
	crashes "$output"
	return 1
}

# crashes prints what a test binary said when it crashed, and how it ended. Its last words belong to a test without a
# result, so gotestsum does not show them. A library that ends the process says a line that begins with F and the date.
crashes() {
	awk '
		!match($0, /"Package":"[^"]+"/) { next }
		{ package = substr($0, RSTART, RLENGTH) }
		/"Output":"(panic: |fatal error: |runtime: |unexpected fault address|signal: |SIG[A-Z]+: |exit status |F[0-9][0-9][0-9][0-9] )/ { left[package] = 80 }
		left[package]-- > 0 && match($0, /"Output":".*"/) { print substr($0, RSTART + 10, RLENGTH - 11) }' "$1" |
		sed -E 's/\\n$//; s/\\t/\t/g; s/\\"/"/g'
}

# feed runs one fuzz target of a folder, on what earlier runs found to be interesting. Where it finds
# a fault there is a new file of its corpus; where there is none, the clock of package testing has cut
# an execution off, which is no fault of the target, and it is run again.
feed() {
	local dir=$1 name=$2 said before result=fail corpus=testdata/fuzz/$2
	cd "$dir" || return
	for _ in first second; do
		before=$(find "$corpus" 2>/dev/null | wc -l)
		if said=$("$results/fuzzers/$dir"/*.test -test.run='^$' -test.fuzz="^$name\$" -test.fuzztime="$fuzz_time" -test.fuzzminimizetime=50x \
			-test.parallel=1 -test.fuzzcachedir="$cache/$dir" 2>&1); then
			result=pass
			break
		fi
		[ "$(find "$corpus" 2>/dev/null | wc -l)" = "$before" ] || break
	done
	[ "$result" = pass ] || printf '%s\n' "$said"
	echo "$result  $dir $name: $(sed -nE 's/.*execs: ([0-9]+).*/\1/p' <<<"$said" | tail -n 1) executions"
	printf '{"Action":"%s","Package":"%s","Test":"%s"}\n' "$result" "$dir" "$name" >"$(mktemp "$results/fuzz.XXXXXX")"
	[ "$result" = pass ]
}

# note_busy sets busy to the processor time of all that has run and ended below this shell, in seconds.
note_busy() {
	local file=$results/.times.$BASHPID
	times >"$file" # in a subshell it would be that of the subshell
	busy=$(awk -F '[ms ]+' 'NR == 2 { printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' "$file")
}

# run_stages runs stages in a row, and notes how each went: how long it took, and how much processor time.
run_stages() {
	local began busy before mark failed=0
	for stage; do
		note_busy
		began=$SECONDS before=$busy mark=✓
		echo "… $stage"
		"stage_$stage" || mark=✗ failed=1
		# Whatever makes a stage fail shows in the sum, also where no test did.
		[ "$mark" = ✓ ] || [[ $(count "$stage.") != *' 0 failed,'* ]] || echo '{"Action":"fail","Package":"'"$stage"'"}' >"$results/$stage.itself"
		note_busy
		printf '  %s %-10s %4d s  %4d s CPU  %s\n' "$mark" "$stage" $((SECONDS - began)) $((busy - before)) "$(count "$stage.")" | tee -a "$results/stages"
	done
	return $failed
}

# count sums up the tests of a stage, or of all, by the last result of each; a package that fails without
# a failed test, as it does not compile or crashes, counts as one.
count() {
	outcomes "${1:-*.}" | awk '
		$3 == "-" { if ($4 == "fail") crashed[$1 $2] = 1; next }
		{ n[$4]++; if ($4 == "fail") named[$1 $2] = 1 }
		END { for (p in crashed) if (!(p in named)) n["fail"]++
			printf "%d passed, %d failed, %d skipped\n", n["pass"], n["fail"], n["skip"] }'
}

# second_runs lists the tests that failed and passed when they ran again.
second_runs() { outcomes '*.' | awk '$3 != "-" && $5 == "again" && $4 == "pass" { print "  failed, and passed when it ran again: " $2 " " $3 }'; }

# outcomes prints a line for each test and package of the result files that a pattern names: the file, the
# package, the test or -, the last result, and "again" if there was a failure before it.
outcomes() {
	# shellcheck disable=SC2086 # it is a pattern
	awk '
		function value(key) { return match($0, "\"" key "\":\"[^\"]+\"") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 5) : "-" }
		{ action = value("Action") }
		action ~ /^(pass|fail|skip)$/ {
			key = FILENAME " " value("Package") " " value("Test")
			if (last[key] == "fail") again[key] = "again"
			last[key] = action
		}
		END { for (key in last) print key, last[key], again[key] }' "$results"/$1* /dev/null 2>/dev/null
}

# Whoever runs in the foreground ends by itself at Ctrl-C, and with an exit code: bash would go on
# with the next stage.
trap 'exit 130' HUP INT TERM
if [ -n "${OPERETTA_LANE:-}" ]; then
	run_stages "$@"
	exit
fi
# Tests that look for the root of a CUE module read the root of the repository, and go test would run them again because the
# time of bin has changed, or that of .git, in which git status makes a lock. So what tests make in bin is made before them.
export GIT_OPTIONAL_LOCKS=0
mkdir -p bin/results bin/scale bin/tests
results=$(mktemp -d "$PWD/bin/results/XXXXXX")
export results
trap 'rm -rf "$results"' EXIT
status=0
if [ $# -gt 0 ]; then
	run_stages "$@" || status=1
else
	# What does not compile, a stage says.
	echo '… programs that tests run'
	go build -o bin/ ./cmd/operetta ./test/demo ./test/registrytest/cmd/registry cuelang.org/go/cmd/cue 2>/dev/null || true
	# Each lane is a process group: what bash starts in the background without one ignores Ctrl-C.
	set -m
	OPERETTA_LANE=computing nice -n 19 "$BASH" "test/stages.sh" $computing </dev/null &
	lanes=$!
	OPERETTA_LANE=waiting "$BASH" "test/stages.sh" $waiting </dev/null &
	lanes="$lanes $!"
	set +m
	# What a lane runs ends as at Ctrl-C, and the lane itself also where its INT was ignored before.
	trap 'for lane in $lanes; do kill -INT -- "-$lane"; kill -TERM "$lane"; done; wait; exit 130' HUP INT TERM
	for lane in $lanes; do wait "$lane" || status=1; done
fi
# A lane that somebody kills has not noted a failure.
[ $status = 0 ] || [[ $(count) != *' 0 failed,'* ]] || echo '{"Action":"fail","Package":"stages"}' >"$results/lanes.itself"
echo
cat "$results/stages"
echo
second_runs
count
exit $status
