// Package child starts processes that run beside tests, and that end with the process that started them,
// however that one ends.
package child

import (
	"bytes"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A Process is a process that was started.
type Process struct {
	cmd *exec.Cmd
	// Ended is closed once the process has ended.
	Ended <-chan struct{}
	// Log has what the process has printed.
	Log *Log

	mu   sync.Mutex
	peak int64 // bytes
}

// killDelay is how long a process that has ended may leave others behind that hold its output.
const killDelay = 10 * time.Second

// Start starts a process, in a process group of its own.
func Start(cmd *exec.Cmd) (*Process, error) {
	ended := make(chan struct{})
	p := &Process{cmd: cmd, Ended: ended, Log: &Log{}}
	cmd.Stdout, cmd.Stderr = p.Log, p.Log
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = killDelay
	if err := startOnLockedThread(cmd); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return p, nil
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ExitCode waits until the process ends by itself, and returns its exit code.
func (p *Process) ExitCode() int {
	<-p.Ended
	return p.cmd.ProcessState.ExitCode()
}

// Kill ends the process with SIGKILL, like a crash.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.Ended
}

// startOnLockedThread starts processes from one thread that never ends, because a process is killed when
// the thread that started it ends: see attributes.
var startOnLockedThread = func() func(*exec.Cmd) error {
	requests := make(chan *exec.Cmd)
	answers := make(chan error)
	var one sync.Mutex
	go func() {
		runtime.LockOSThread()
		for cmd := range requests {
			answers <- cmd.Start()
		}
	}()
	return func(cmd *exec.Cmd) error {
		one.Lock()
		defer one.Unlock()
		requests <- cmd
		return <-answers
	}
}()

// A Log collects the output of a process.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// Len returns the length of the output so far, a position for From.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Len()
}

// From returns the output after a position.
func (l *Log) From(position int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.buf.Bytes()[position:])
}

// Text returns the whole output.
func (l *Log) Text() string { return l.From(0) }

// Tail returns the last lines of the output.
func (l *Log) Tail(lines int) string {
	all := strings.Split(strings.TrimSpace(l.Text()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
