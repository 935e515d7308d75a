package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"operetta.dev/engine/source"
)

// asWorker does what a worker does before it looks at the package.
func asWorker() {
	memory, err := strconv.ParseInt(os.Args[3], 10, 64)
	if err == nil {
		err = limitSelf(memory)
	}
	if err == nil {
		_, err = source.Receive(os.Stdin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "operetta:", err)
		os.Exit(exitWrong)
	}
	go endWith(os.Stdin)
}

// overflow dies as a worker does that CUE sends into endless recursion.
func overflow() {
	asWorker()
	endless := &list{}
	endless.rest = endless
	runtime.KeepAlive(deeper(endless))
}

// spin never ends, as a worker does that CUE gives endless work.
func spin() {
	asWorker()
	for n := 0; ; n++ {
		runtime.KeepAlive(n)
	}
}

// hoard takes more and more memory, as CUE does with a list without end.
func hoard() {
	asWorker()
	var all []int
	for n := 0; ; n++ {
		all = append(all, n)
		runtime.KeepAlive(all)
	}
}

// gulp takes more memory than there is, at once, as CUE does with a number of that size.
func gulp() {
	asWorker()
	const once = 1 << 44
	runtime.KeepAlive(make([]byte, once))
}

// chatter says more than anybody wants to know.
func chatter() {
	asWorker()
	for {
		fmt.Println(strings.Repeat("x", 1<<20))
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 1<<20))
	}
}

// lie answers about another package.
func lie() {
	asWorker()
	fmt.Println(`{"digest":"sha256:0123456789abcdef"}`)
}

// list is a list that never ends when a pointer leads back.
type list struct{ rest *list }

// deeper returns the depth of a list.
func deeper(l *list) int {
	if l == nil {
		return 0
	}
	return 1 + deeper(l.rest)
}

// aPackage returns a package that is nothing.
func aPackage(t testing.TB) *source.Snapshot {
	t.Helper()
	s, err := source.New(fstest.MapFS{"a/b/b.cue": {Data: []byte("package b\n")}}, "a/b", nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// examinerOf returns an examiner whose workers are a program.
func examinerOf(program string) *examiner {
	return &examiner{program: program, timeout: time.Minute, memory: leastMemory, slots: make(chan struct{}, 1)}
}

func TestAWorkerThatDoesNotAnswerIsALine(t *testing.T) {
	for name, c := range map[string]struct{ reason, program, want string }{
		"Overflow": {"Go's stack is no help to whoever wrote the CUE", "overflow", "CUE crashed: endless recursion; does a definition contain itself?"},
		"Hoard":    {"the operator goes on, and says what it is", "hoard", "the check needs more than 128 MiB; does the package loop without end?"},
		"Gulp":     {"what Go refuses at once it does not survive", "gulp", "CUE crashed, with a limit of 128 MiB: "},
		"Chatter":  {"the answer is kept in memory", "chatter", "the result has more than 16 MiB"},
		"Lie":      {"what was examined is what is loaded", "lie", "the worker has examined sha256:0123456789ab, not sha256:"},
		"Silence":  {"no answer is no good one", "true", "reading the worker's answer: unexpected end of JSON input"},
		"Failure":  {"nor is an end without words", "false", "CUE crashed, with a limit of 128 MiB: exit status 1"},
	} {
		if raced && (c.program == "overflow" || c.program == "hoard") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			_, err := examinerOf(c.program).examine(t.Context(), aPackage(t), examineAll)
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
		if got := lastWords(stderr, killed{}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// killed is the state of a process that was killed.
type killed struct{}

// String returns what package exec says.
func (killed) String() string { return "signal: killed" }

func TestACancelledExaminationIsNotAFaultOfThePackage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := examinerOf("spin").examine(ctx, aPackage(t), examineAll)
	if err == nil || !strings.HasSuffix(err.Error(), "context canceled") {
		t.Errorf("got %v, want that the context was cancelled", err)
	}
}

func TestEndlessWorkIsCutOff(t *testing.T) {
	e := examinerOf("spin")
	e.timeout = time.Millisecond
	_, err := e.examine(t.Context(), aPackage(t), examineAll)
	want := "package b: the check took longer than 1ms; does the package loop without end?"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A worker that nobody will end any more ends by itself.
func TestAWorkerEndsWithWhoStartedIt(t *testing.T) {
	in, out := io.Pipe()
	cmd := exec.CommandContext(t.Context(), "spin", "worker", examineAll, strconv.Itoa(leastMemory), "")
	cmd.Stdin = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := aPackage(t).Send(out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitAlone {
		t.Errorf("got %v", err)
	}
}
