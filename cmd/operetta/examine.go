package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
)

const (
	// maxAnswer bounds what a worker says, in bytes: a definition has at most a megabyte and
	// a half, or etcd does not take it.
	maxAnswer = 16 << 20
	// maxComplaint bounds what is kept of what it complains.
	maxComplaint = 64 << 10
)

// An examiner examines packages, each in a process of its own.
type examiner struct {
	// program is the binary, and args stand before those of a worker.
	program string
	timeout time.Duration
	memory  int64
	slots   chan struct{}
	// scopes are of the kinds whose definitions were given.
	scopes vet.Scopes
}

// newExaminer returns an examiner whose workers may have some memory each, in bytes, or if that
// is 0 what is left for them.
func newExaminer(memory quantity) (*examiner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the operetta binary: %w", err)
	}
	l := limitsFor(availableMemory(), int64(memory))
	return &examiner{program: self, timeout: examineTimeout, memory: l.memory, slots: make(chan struct{}, l.slots)}, nil
}

// knowing returns an examiner that knows where the objects of some kinds live.
func (e *examiner) knowing(scopes vet.Scopes) *examiner {
	out := *e
	out.scopes = scopes
	return &out
}

// commands examines packages for commands that end with them.
var commands = sync.OnceValues(func() (*examiner, error) { return newExaminer(0) })

// examine examines a package in a process of its own. It errors when that process dies, takes
// too long or too much; what is wrong with the package is in the finding.
func (e *examiner) examine(ctx context.Context, snapshot *source.Snapshot, mode string) (finding, error) {
	f, err := e.ask(ctx, snapshot, mode)
	if err != nil {
		return finding{}, fmt.Errorf("package %s: %w", snapshot.Name(), err)
	}
	return f, nil
}

// ask starts a worker and waits for its answer.
func (e *examiner) ask(ctx context.Context, snapshot *source.Snapshot, mode string) (finding, error) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return finding{}, ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, e.program, "worker", mode, strconv.FormatInt(e.memory, 10), encodeScopes(e.scopes))
	alone(cmd)
	answer, complaint := &bounded{limit: maxAnswer, over: cancel}, &bounded{limit: maxComplaint}
	cmd.Stdout, cmd.Stderr = answer, complaint
	if err := converse(cmd, snapshot); err != nil || answer.lost {
		return finding{}, e.explain(ctx, limited, err, answer.lost, complaint.kept.String())
	}
	var f finding
	if err := json.Unmarshal(answer.kept.Bytes(), &f); err != nil {
		return finding{}, fmt.Errorf("reading the worker's answer: %w", err)
	}
	if f.Digest != snapshot.Digest() {
		return finding{}, fmt.Errorf("the worker has examined %s, not %s", short(f.Digest), short(snapshot.Digest()))
	}
	return f, nil
}

// converse runs a worker: it gets the package, and then nothing more until it ends.
func converse(cmd *exec.Cmd, snapshot *source.Snapshot) error {
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
		_ = snapshot.Send(in) // a worker that died reads nothing, and its end says why
	}()
	err = cmd.Wait()
	<-sent
	return err
}

// explain says why a worker has not answered. It goes by how it ended, not by what it said.
func (e *examiner) explain(ctx, limited context.Context, err error, saidTooMuch bool, complaint string) error {
	var exit *exec.ExitError
	ended := errors.As(err, &exit)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case saidTooMuch:
		return fmt.Errorf("the result has more than %d MiB", maxAnswer>>20)
	case limited.Err() != nil, ended && exit.ExitCode() == exitTime:
		return fmt.Errorf("the check took longer than %s; does the package loop without end?", e.timeout)
	case ended && exit.ExitCode() == exitMemory:
		return fmt.Errorf("the check needs more than %d MiB; does the package loop without end?", e.memory>>20)
	case ended && exit.ExitCode() == exitStack:
		return errors.New("CUE crashed: endless recursion; does a definition contain itself?")
	case ended:
		return fmt.Errorf("CUE crashed, with a limit of %d MiB: %s", e.memory>>20, lastWords(complaint, exit))
	}
	return err
}

// lastWords returns what a process that died said about it, without Go's stack trace.
func lastWords(complaint string, exit fmt.Stringer) string {
	for line := range strings.Lines(complaint) {
		for _, prefix := range []string{"fatal error: ", "panic: ", "operetta: "} {
			if words, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
				return words
			}
		}
	}
	return exit.String()
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	// kept is no embedded field: a Buffer reads by itself, without a limit.
	kept  bytes.Buffer
	limit int
	// lost says that there was more.
	lost bool
	// over is called then, if it is not nil.
	over func()
}

// Write takes everything and keeps what there is room for.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.kept.Len()
	if len(p) <= room {
		return b.kept.Write(p)
	}
	b.lost = true
	b.kept.Write(p[:room])
	if b.over != nil {
		b.over()
	}
	return len(p), nil
}
