package worker

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"operetta.dev/engine/program"
)

// A process is one worker. Only one caller at a time uses it.
type process struct {
	limits Limits
	// patience is how many times as long something may take by the clock as of processor time.
	patience int
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	// loaded are the packages that it has.
	loaded map[uint64]bool
	// evaluations is how many requests it was sent, and retire is true once it should be replaced.
	evaluations atomic.Int64
	retire      bool
	// suspect is true if a suspect namespace has used it last.
	suspect bool
	// killed is true once this process has killed it.
	killed atomic.Bool
	// ended is closed when it has ended.
	ended chan struct{}
	// idle ends it when nobody has used it for a while.
	idle *time.Timer
}

// start starts a worker, and waits until it is ready. It errors if it cannot be started, or ends before.
func start(ctx context.Context, o Options) (*process, error) {
	in, toWorker, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromWorker, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close(), toWorker.Close())
	}
	// A worker outlives the request that it is started for.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), o.Command[0], slices.Concat(o.Command[1:], o.Limits.Arguments())...)
	OwnProcessGroup(cmd)
	// A worker does one thing at a time; with more threads, garbage collection would cost more time.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	said := &firstWords{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, said
	err = cmd.Start()
	_, _ = in.Close(), out.Close() // the worker has its own
	if err != nil {
		return nil, errors.Join(err, toWorker.Close(), fromWorker.Close())
	}
	w := &process{limits: o.Limits, patience: cmp.Or(o.Patience, defaultPatience), cmd: cmd, in: toWorker, out: bufio.NewReader(fromWorker), loaded: map[uint64]bool{}, ended: make(chan struct{})}
	o.Metrics.started.Inc()
	go func() {
		_ = cmd.Wait() // the state says more
		_ = toWorker.Close()
		o.Metrics.evaluations.Observe(float64(w.evaluations.Load()))
		o.Metrics.ended.WithLabelValues(causeOf(cmd.ProcessState, w.killed.Load())).Inc()
		close(w.ended)
	}()
	timeoutCtx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := w.receive(timeoutCtx, &response{}); err != nil {
		w.kill()
		return nil, fmt.Errorf("starting a worker: %w: %s %s", err, cmd.ProcessState, said)
	}
	said.stop()
	return w, nil
}

// load makes the worker load a package, unless it has.
func (w *process) load(ctx context.Context, p *Package) error {
	if w.loaded[p.number] {
		return nil
	}
	timeoutCtx, cancel := context.WithTimeout(ctx, w.clockLimit(loadTime))
	defer cancel()
	defer context.AfterFunc(timeoutCtx, w.kill)() // a worker that does not read blocks whoever sends it more than a pipe holds
	var out response
	err := send(w.in, request{Package: p.number, Load: true})
	if err == nil {
		err = p.program.Snapshot().Send(w.in)
	}
	if err == nil {
		err = w.receive(timeoutCtx, &out)
	}
	if err == nil {
		err = out.Failure.err()
	}
	w.loaded[p.number], w.retire = err == nil, w.retire || out.Retire
	if err != nil {
		w.kill()
		return fmt.Errorf("loading package %s in a worker (%s): %w", p.program.Name(), w.cmd.ProcessState, err)
	}
	return nil
}

// errDied is the error of a worker that has not answered. Its process has ended.
var errDied = errors.New("the worker has ended")

// ask returns the answer to a request. If there is none, it errors with the LimitError of the evaluation,
// with the error of the context, or with errDied.
func (w *process) ask(ctx context.Context, r request) (response, error) {
	limit, err := w.timeFor(ctx, r)
	if err != nil {
		return response{}, err
	}
	if r.awaited() {
		// Whoever asked may be gone at any time, and a worker costs more than the rest of a review.
		ctx = context.WithoutCancel(ctx)
	}
	timeoutCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w.evaluations.Add(1)
	var out response
	if err = w.send(timeoutCtx, r); err == nil {
		err = w.receive(timeoutCtx, &out)
	}
	if err == nil {
		w.retire = w.retire || out.Retire
		return out, nil
	}
	w.kill()
	switch exceeded := w.limit(); {
	case ctx.Err() != nil:
		return response{}, ctx.Err()
	case exceeded != nil:
		return response{}, exceeded
	case timeoutCtx.Err() != nil && r.awaited():
		return response{}, errLate // the machine may have been busy: processor time has a limit of its own
	case timeoutCtx.Err() != nil:
		text := fmt.Sprintf("its evaluation did not end within %s", limit.Round(time.Second))
		return response{}, &program.LimitError{Evaluated: true, TooSlow: true, Text: text}
	}
	return response{}, errDied
}

// errLate is the error of a review for which too little time is left.
var errLate = errors.New("there was no worker in time")

// timeFor returns how long the answer to a request may take by the clock. A review ends before its context, so that
// whoever asks learns why.
func (w *process) timeFor(ctx context.Context, r request) (time.Duration, error) {
	limit := w.clockLimit(w.limits.Time)
	end, ends := ctx.Deadline()
	if !r.awaited() || !ends {
		return limit, nil
	}
	left := time.Until(end) - answerTime
	if left < reviewTime {
		return 0, errLate
	}
	return min(limit, left), nil
}

// clockLimit returns how long something may take by the clock that may take so much processor time.
func (w *process) clockLimit(processorTime time.Duration) time.Duration {
	return time.Duration(w.patience) * processorTime
}

// send writes a request; the worker is killed if the context ends before it has taken it.
func (w *process) send(ctx context.Context, r request) error {
	defer context.AfterFunc(ctx, w.kill)()
	return send(w.in, r)
}

// receive reads a response; the worker is killed if the context ends before there is one.
func (w *process) receive(ctx context.Context, into *response) error {
	defer context.AfterFunc(ctx, w.kill)()
	return receive(w.out, into)
}

// kill ends the worker, and waits until it has ended.
func (w *process) kill() {
	if !w.hasEnded() { // another process may have its number otherwise
		w.killed.Store(true)
		_ = w.cmd.Cancel()
	}
	<-w.ended
}

// hasEnded reports whether the worker has ended.
func (w *process) hasEnded() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// sharesMemory reports whether there is something else than a package in the worker's memory.
func (w *process) sharesMemory(pkg uint64) bool {
	return w.evaluations.Load() > 0 || len(w.loaded) > 1 || len(w.loaded) == 1 && !w.loaded[pkg]
}

// close lets the worker end by itself.
func (w *process) close() { _ = w.in.Close() }

// limit returns what an evaluation has exceeded that the worker has ended in, or nil if the worker has
// ended for another reason, such as a lack of memory on the machine. It is decided by how the worker
// ended, never by what it printed, which may contain what users have written.
func (w *process) limit() *program.LimitError {
	out := &program.LimitError{Evaluated: true}
	switch state := w.cmd.ProcessState; state.ExitCode() {
	case ExitTime:
		out.TooSlow = true
		out.Text = fmt.Sprintf("its evaluation took more than the limit of %s of processor time", w.limits.Time)
	case ExitMemory:
		out.Text = fmt.Sprintf("its evaluation took more than the limit of %d MiB of memory", w.limits.Memory>>20)
	case ExitStack:
		out.Text = fmt.Sprintf("its evaluation took more than the limit of %d MiB of stack", exitStackSize>>20)
	default:
		return nil
	}
	return out
}

// firstWords keeps the beginning of what a worker prints until it is ready. What it prints later may
// contain what users have written, and others may read a log.
type firstWords struct {
	mu    sync.Mutex
	text  []byte
	ready bool
}

// maxFirstWords is how many bytes of that are kept.
const maxFirstWords = 1 << 10

// Write keeps what fits, and accepts everything.
func (f *firstWords) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ready {
		f.text = append(f.text, p[:min(len(p), maxFirstWords-len(f.text))]...)
	}
	return len(p), nil
}

// stop keeps nothing any more.
func (f *firstWords) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready, f.text = true, nil
}

// String returns what was kept.
func (f *firstWords) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.TrimSpace(string(f.text))
}
