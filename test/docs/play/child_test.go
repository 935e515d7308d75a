package play

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A child is a process that runs beside a test.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// Write implements io.Writer.
func (c *child) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

// output returns what the process has printed so far.
func (c *child) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

// start starts a process.
func start(cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = c, c
	cmd.SysProcAttr = dyingWithParent()
	cmd.WaitDelay = 10 * time.Second
	if err := spawn(cmd); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// await waits until the process has printed a text.
func (c *child) await(text string) error {
	deadline := time.After(patience)
	for !strings.Contains(c.output(), text) {
		select {
		case <-c.ended:
			return fmt.Errorf("it has ended:\n%s", c.output())
		case <-deadline:
			return fmt.Errorf("it has not printed %q:\n%s", text, c.output())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// end ends the process and what it has started, as Ctrl-C would.
func (c *child) end() {
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGINT)
	select {
	case <-c.ended:
	case <-time.After(30 * time.Second):
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		<-c.ended
	}
}

// spawn starts processes from one thread that never ends: see dyingWithParent.
var spawn = func() func(*exec.Cmd) error {
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

// playground is the `make run` that all documents are played on.
var playground struct {
	once    sync.Once
	child   *child
	exports []string
	err     error
}

// startedPlayground runs `make run`, once, and returns the lines that it tells its
// user to paste into another terminal.
func startedPlayground(t *testing.T) ([]string, error) {
	t.Helper()
	p := &playground
	p.once.Do(func() {
		cmd := exec.Command("make", "run")
		cmd.Dir = filepath.FromSlash(root)
		cmd.Env = environment()
		if p.child, p.err = start(cmd); p.err != nil {
			return
		}
		if p.err = p.child.await("Ctrl-C ends it."); p.err != nil {
			return
		}
		for line := range strings.Lines(p.child.output()) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "export ") {
				p.exports = append(p.exports, line)
			}
		}
	})
	return p.exports, p.err
}
