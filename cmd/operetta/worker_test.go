package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"operetta.dev/engine/source"
	"operetta.dev/engine/worker"
	"operetta.dev/test/machine"
)

// startWorker does what a worker does before it looks at the package.
func startWorker() *source.Snapshot {
	l, err := worker.ParseLimits(os.Args[3], os.Args[4])
	if err == nil {
		err = worker.LimitProcess(l)
	}
	var snapshot *source.Snapshot
	if err == nil {
		snapshot, err = source.Receive(os.Stdin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "operetta:", err)
		os.Exit(exitFailure)
	}
	go worker.ExitWithParent(os.Stdin)
	return snapshot
}

// recurseForever dies as a worker does that CUE sends into endless recursion.
func recurseForever() {
	startWorker()
	endless := &node{}
	endless.next = endless
	runtime.KeepAlive(length(endless))
}

// loopForever never ends, as a worker does that CUE gives endless work.
func loopForever() {
	startWorker()
	for n := 0; ; n++ {
		runtime.KeepAlive(n)
	}
}

// allocateForever takes more and more memory, as CUE does with a list without end.
func allocateForever() {
	startWorker()
	var all []int
	for n := 0; ; n++ {
		all = append(all, n)
		runtime.KeepAlive(all)
	}
}

// allocateAtOnce takes more memory than there is, at once, as CUE does with a number of that size.
func allocateAtOnce() {
	startWorker()
	const once = 1 << 44
	runtime.KeepAlive(make([]byte, once))
}

// printForever says more than anybody wants to know.
func printForever() {
	startWorker()
	for {
		fmt.Println(strings.Repeat("x", 1<<20))
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 1<<20))
	}
}

// answerOtherPackage answers about another package.
func answerOtherPackage() {
	startWorker()
	fmt.Println(`{"digest":"sha256:0123456789abcdef"}`)
}

// stopForAWhile gets no processor for two seconds, as in a pod that used up its share, and then answers.
func stopForAWhile() {
	snapshot := startWorker()
	// Not $PPID: if this process is killed first, that is another process. After it goes on, the worker
	// has time to look at its limits before it answers.
	script := fmt.Sprintf("kill -STOP %[1]d && sleep 2; kill -CONT %[1]d; sleep 0.2", os.Getpid())
	if err := exec.CommandContext(context.Background(), "sh", "-c", script).Run(); err != nil {
		panic(err)
	}
	_ = json.NewEncoder(os.Stdout).Encode(finding{Digest: snapshot.Digest()})
}

// node is a list that never ends when a pointer leads back.
type node struct{ next *node }

// length returns the depth of a list.
func length(l *node) int {
	if l == nil {
		return 0
	}
	return 1 + length(l.next)
}

// emptyPackage returns a package that is nothing.
func emptyPackage(t testing.TB) *source.Snapshot {
	t.Helper()
	s, err := source.Loader{}.Module("b", "", "a/b", fstest.MapFS{"a/b/b.cue": {Data: []byte("package b\n")}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newTestExaminer returns an examiner whose workers are a program.
func newTestExaminer(program string) *examiner {
	return &examiner{program: func() (string, error) { return program, nil }, limits: worker.Limits{Memory: minWorkerMemory, Time: time.Minute}, timeout: 2 * time.Minute, slots: make(chan struct{}, 1)}
}

func TestAWorkerThatDoesNotAnswerIsALine(t *testing.T) {
	machine.Serial(t)
	for name, c := range map[string]struct{ reason, program, want string }{
		"Overflow": {"Go's stack is no help to whoever wrote the CUE", "overflow", "CUE crashed: endless recursion; does a definition contain itself?"},
		"Hoard":    {"the operator goes on, and says what it is", "hoard", "the check needs more than 128 MiB; does the package loop without end?"},
		"Gulp":     {"what Go refuses at once it does not survive", "gulp", "CUE crashed, with a limit of 128 MiB: "},
		"Chatter":  {"the answer is kept in memory", "chatter", "the result has more than 16 MiB"},
		"Lie":      {"what was examined is what is loaded", "lie", "the worker has examined sha256:0123456789ab, not sha256:"},
		"Silence":  {"no answer is no good one", "true", "reading the worker's answer: unexpected EOF"},
		"Failure":  {"nor is an end without words", "false", "CUE crashed, with a limit of 128 MiB: exit status 1"},
	} {
		if raceEnabled && (c.program == "overflow" || c.program == "hoard") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			_, err := newTestExaminer(c.program).examine(t.Context(), emptyPackage(t), examineAll)
			if err == nil || !strings.HasPrefix(err.Error(), "package b: "+c.want) {
				t.Errorf("%s: got %v, want %s", c.reason, err, c.want)
			}
		})
	}
}

func TestLastWordsAreShownWithoutTheStack(t *testing.T) {
	for stderr, want := range map[string]string{
		"runtime: x\nfatal error: out of memory\n\ngoroutine 1 [running]:\n": "out of memory",
		"panic: unreachable\n\ngoroutine 1 [running]:\n":                     "unreachable",
		"": "signal: killed",
	} {
		if got := crashMessage(stderr, killedState{}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// killedState is the state of a process that was killed.
type killedState struct{}

// String returns what package exec says.
func (killedState) String() string { return "signal: killed" }

func TestACancelledExaminationIsNotAFaultOfThePackage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newTestExaminer("spin").examine(ctx, emptyPackage(t), examineAll)
	if err == nil || !strings.HasSuffix(err.Error(), "context canceled") {
		t.Errorf("got %v, want that the context was cancelled", err)
	}
}

func TestEndlessWorkIsCutOff(t *testing.T) {
	e := newTestExaminer("spin")
	e.limits.Time = 10 * time.Millisecond
	_, err := e.examine(t.Context(), emptyPackage(t), examineAll)
	want := "package b: the check took more than 10ms of processor time; does the package loop without end?"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAWorkerThatGetsNoProcessorIsNotToldAsLooping(t *testing.T) {
	e := newTestExaminer("stop")
	e.limits.Time = 500 * time.Millisecond
	began := time.Now()
	if _, err := e.examine(t.Context(), emptyPackage(t), examineAll); err != nil {
		t.Errorf("stopped for longer than its processor time: %v", err)
	}
	if took := time.Since(began); took < 2*e.limits.Time {
		t.Fatalf("the worker took %s, so it was not stopped", took)
	}
	e.timeout = 100 * time.Millisecond
	_, err := e.examine(t.Context(), emptyPackage(t), examineAll)
	want := "package b: the check did not end within 100ms, in which it got 0s of processor time; is the machine overloaded?"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A worker that nobody will end any more ends by itself.
func TestAWorkerEndsWithWhoStartedIt(t *testing.T) {
	in, out := io.Pipe()
	cmd := exec.CommandContext(t.Context(), "spin", append([]string{"worker"}, workerArgs(examineAll, worker.Limits{Memory: minWorkerMemory, Time: time.Minute}, nil)...)...)
	cmd.Stdin = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := emptyPackage(t).Send(out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != worker.ExitOrphaned {
		t.Errorf("got %v", err)
	}
}
