package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"operetta.dev/engine/check"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
	"operetta.dev/engine/worker"
)

const (
	// maxWorkerOutput bounds the standard output of a worker, in bytes. The largest part is the
	// CustomResourceDefinition, which etcd does not accept beyond one and a half megabytes.
	maxWorkerOutput = 16 << 20
	// maxWorkerStderr bounds how much of a worker's standard error is kept, in bytes.
	maxWorkerStderr = 64 << 10
)

// An examiner examines packages, each in a worker process.
type examiner struct {
	// program returns the binary that is run as the worker.
	program func() (string, error)
	limits  worker.Limits
	// timeout is how long a worker may take, besides the processor time in its limits.
	timeout time.Duration
	// slots limits how many workers run concurrently.
	slots chan struct{}
	// room waits for the memory of one worker, and returns a function that gives it back. It is nil if
	// memory has no limit.
	room func(context.Context) (func(), error)
	// scopes are the scopes of kinds whose CustomResourceDefinitions were given.
	scopes vet.Scopes
	// extra are more arguments of a worker, and progress is called with how much it has done of all; see cases and explore.
	extra    []string
	progress func(done, all int, unit string)
	// asked is how much processor time a person has asked for, if it is not 0.
	asked time.Duration
}

// allow sets how much processor time each worker may use. 0 leaves it as it is.
func (e *examiner) allow(asked time.Duration) {
	if asked > 0 {
		e.asked, e.limits.Time = asked, asked
		e.timeout = max(e.timeout, 2*asked)
	}
}

// newExaminer returns an examiner whose workers have a memory limit, in bytes. 0 stands for a limit
// that fits the memory limit of this process.
func newExaminer(memory quantity) *examiner {
	l := workerLimitsFor(availableMemory(), int64(memory))
	return &examiner{program: thisBinary, limits: worker.Limits{Memory: l.memory, Time: examineTime}, timeout: examineTimeout, slots: make(chan struct{}, l.slots)}
}

// thisBinary returns the binary that this process runs.
func thisBinary() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the operetta binary: %w", err)
	}
	return self, nil
}

// commandExaminer is the examiner of the commands other than run, which has a flag for the memory.
var commandExaminer = sync.OnceValue(func() *examiner { return newExaminer(0) })

// examine examines a package in a worker process. It errors if the worker dies, or exceeds its time,
// memory or output, and then returns what it has found until then; faults of the package are in the finding.
func (e *examiner) examine(ctx context.Context, snapshot *source.Snapshot, mode string) (finding, error) {
	f, err := e.runWorker(ctx, snapshot, mode)
	if err != nil {
		return f, fmt.Errorf("package %s: %w", snapshot.Name(), err)
	}
	return f, nil
}

// checkedPackage is a package that has passed all checks.
type checkedPackage struct {
	snapshot *source.Snapshot
	program  *program.Program
	// crd is nil if it was not asked for.
	crd      *apiextensionsv1.CustomResourceDefinition
	warnings fault.Faults
}

// checkAndCompile examines a package in a worker process, and compiles the same snapshot here, even
// if the folder has changed in the meantime. It errors with the faults of the package.
func (e *examiner) checkAndCompile(ctx context.Context, snapshot *source.Snapshot, mode string) (checkedPackage, error) {
	found, err := e.examine(ctx, snapshot, mode)
	if err != nil {
		return checkedPackage{}, err
	}
	if len(found.Faults) > 0 {
		return checkedPackage{}, found.Faults
	}
	p, err := compile(snapshot)
	return checkedPackage{snapshot, p, found.CRD, found.Warnings}, err
}

// runWorker starts a worker and returns its answer.
func (e *examiner) runWorker(ctx context.Context, snapshot *source.Snapshot, mode string) (finding, error) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return finding{}, ctx.Err()
	}
	if e.room != nil {
		release, err := e.room(ctx)
		if err != nil {
			return finding{}, err
		}
		defer release()
	}
	program, err := e.program()
	if err != nil {
		return finding{}, err
	}
	timeoutCtx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	cmd := exec.CommandContext(timeoutCtx, program, slices.Concat([]string{"worker"}, workerArgs(mode, e.limits, e.scopes), e.extra)...)
	worker.OwnProcessGroup(cmd)
	stdout, stderr := &limitedBuffer{limit: maxWorkerOutput, onOverflow: cancel}, &limitedBuffer{limit: maxWorkerStderr}
	cmd.Stdout, cmd.Stderr = stdout, e.withProgress(stderr)
	if err := sendAndWait(cmd, snapshot); err != nil || stdout.truncated {
		found, _ := lastFinding(&stdout.buf) // what it was writing when it ended is lost
		err = e.workerError(ctx, timeoutCtx, err, stdout.truncated, stderr.buf.String())
		if exceeded, is := errors.AsType[*exceededError](err); is {
			exceeded.explain(snapshot)
		}
		return found, err
	}
	f, err := lastFinding(&stdout.buf)
	if err != nil {
		return finding{}, fmt.Errorf("reading the worker's answer: %w", err)
	}
	if f.Digest != snapshot.Digest() {
		return finding{}, fmt.Errorf("the worker has examined %s, not %s", shortDigest(f.Digest), shortDigest(snapshot.Digest()))
	}
	return f, nil
}

// lastFinding reads the answers of a worker. The last one says everything; without it, as the worker has died, it
// returns the counterexamples and explorations of the others. It errors if there is none, or something else behind one.
func lastFinding(answers io.Reader) (finding, error) {
	read := json.NewDecoder(answers)
	var last, told finding
	for {
		var f finding
		switch err := read.Decode(&f); {
		case errors.Is(err, io.EOF) && last.Digest != "":
			return last, nil
		case errors.Is(err, io.EOF):
			return told, io.ErrUnexpectedEOF
		case err != nil:
			return told, err
		}
		last = f
		if f.Digest == "" {
			told.Explored = append(told.Explored, f.Explored...)
		}
		if found := f.report().Counterexamples; f.Digest == "" && len(found) > 0 {
			told.Check = &check.Report{Counterexamples: slices.Concat(told.report().Counterexamples, found)}
		}
	}
}

// sendAndWait runs a worker. It sends the package to its standard input, and keeps the pipe open
// until the worker ends, because a worker exits when the pipe is closed.
func sendAndWait(cmd *exec.Cmd, snapshot *source.Snapshot) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_ = snapshot.Send(in) // it fails if the worker has died, and then Wait says why
	}()
	err = cmd.Wait()
	<-sent
	return err
}

// workerError returns why a worker has not answered. It is decided by how the worker ended, never by
// what it printed.
func (e *examiner) workerError(ctx, timeoutCtx context.Context, err error, truncated bool, stderr string) error {
	var exit *exec.ExitError
	ended := errors.As(err, &exit)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case truncated:
		return fmt.Errorf("the result has more than %d MiB", maxWorkerOutput>>20)
	case timeoutCtx.Err() != nil:
		return &exceededError{limit: fmt.Sprintf("the check did not end within %s, in which it got %s of processor time", e.timeout, usedTime(exit)), why: "is the machine overloaded?"}
	case ended && exit.ExitCode() == worker.ExitTime:
		return &exceededError{limit: fmt.Sprintf("the check took more than %s of processor time", e.limits.Time), why: "does the package loop without end?"}
	case ended && exit.ExitCode() == worker.ExitMemory:
		return &exceededError{limit: fmt.Sprintf("the check needs more than %d MiB", e.limits.Memory>>20), why: "does the package loop without end?"}
	case ended && exit.ExitCode() == worker.ExitStack:
		return errors.New("CUE crashed: endless recursion; does a definition contain itself?")
	case ended:
		return fmt.Errorf("CUE crashed, with a limit of %d MiB: %s", e.limits.Memory>>20, crashMessage(stderr, exit))
	}
	return err
}

// An exceededError says that a worker has used up a limit.
type exceededError struct{ limit, why string }

// Error says which limit that is, and what may be the cause.
func (e *exceededError) Error() string { return e.limit + "; " + e.why }

// explain names what the package has so much of that the worker may have needed more than the limit without a loop.
func (e *exceededError) explain(s *source.Snapshot) {
	if bulk, has := program.LargestPart(s); has {
		e.why = bulk.String()
	}
}

// usedTime returns how much processor time a process that ended has used.
func usedTime(exit *exec.ExitError) time.Duration {
	if exit == nil {
		return 0
	}
	return (exit.UserTime() + exit.SystemTime()).Round(time.Second)
}

// crashMessage returns the message of a process that crashed, without Go's stack trace.
func crashMessage(stderr string, exit fmt.Stringer) string {
	for line := range strings.Lines(stderr) {
		for _, prefix := range []string{"fatal error: ", "panic: ", "operetta: "} {
			if message, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
				return message
			}
		}
	}
	return exit.String()
}

// limitedBuffer keeps what is written to it up to a limit.
type limitedBuffer struct {
	// buf is not embedded, because io.Copy would use its ReadFrom method, which has no limit.
	buf   bytes.Buffer
	limit int
	// truncated says that more than the limit was written.
	truncated bool
	// onOverflow is called when truncated is set, if it is not nil.
	onOverflow func()
}

// Write accepts everything and keeps what fits into the limit.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	room := b.limit - b.buf.Len()
	if len(p) <= room {
		return b.buf.Write(p)
	}
	b.truncated = true
	b.buf.Write(p[:room])
	if b.onOverflow != nil {
		b.onOverflow()
	}
	return len(p), nil
}
