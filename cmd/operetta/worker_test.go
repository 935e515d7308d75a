package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// overflow dies as a worker does that CUE sends into endless recursion: with a stack
// trace on stderr and exit code 2.
func overflow() {
	debug.SetMaxStack(1 << 20) // it need not take a gigabyte to die
	endless := &list{}
	endless.rest = endless
	runtime.KeepAlive(deeper(endless))
}

// spin never ends, as a worker does that CUE gives endless work.
func spin() {
	for n := 0; ; n++ {
		runtime.KeepAlive(n)
	}
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

func TestAWorkerThatDiesIsALine(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		stderr string
		want   string
	}{
		"Overflow": {
			"Go's stack is no help to whoever wrote the CUE",
			"runtime: goroutine stack exceeds 134217728-byte limit\nfatal error: stack overflow\n\ngoroutine 1 [running]:\n",
			"endless recursion; is there a definition that contains itself?",
		},
		"Panic":  {"the first line says what happened", "panic: unreachable\n\ngoroutine 1 [running]:\n", "unreachable"},
		"Memory": {"any fatal error is reported", "fatal error: out of memory\n", "out of memory"},
		"Killed": {"a process that was killed says nothing", "", "signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastWords(c.stderr, killedError{}); got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// killedError is how package exec reports a process that was killed.
type killedError struct{}

// Error returns what package exec says.
func (killedError) Error() string { return "signal: killed" }

func TestARealOverflowIsALine(t *testing.T) {
	_, err := worker{program: "overflow", timeout: time.Minute}.run(t.Context(), "a/b", examineAll)
	want := "package a/b: CUE crashed on it: endless recursion; is there a definition that contains itself?"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestACancelledExaminationIsNotAFaultOfThePackage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := worker{program: "spin", timeout: time.Minute}.run(ctx, "a/b", examineAll)
	if err == nil || !strings.HasSuffix(err.Error(), "context canceled") {
		t.Errorf("got %v, want that the context was cancelled", err)
	}
}

func TestEndlessWorkIsCutOff(t *testing.T) {
	_, err := worker{program: "spin", timeout: time.Millisecond}.run(t.Context(), "a/b", examineAll)
	want := "package a/b: not understood within 1ms; does it ask for endless work?"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAnAnswerThatIsNoneIsAnError(t *testing.T) {
	_, err := worker{program: "true", timeout: time.Minute}.run(t.Context(), "a/b", examineAll)
	if err == nil || !strings.HasPrefix(err.Error(), "package a/b: reading the worker's answer: ") {
		t.Errorf("got %v, want that there was no answer", err)
	}
}
