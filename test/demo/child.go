package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"operetta.dev/test/internal/screen"
)

// childTimeout is how long a child may take to end when asked to.
const childTimeout = 5 * time.Second

// A child is a process that runs beside the demo.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of the process, once done is closed
}

// startChild starts a process, whose lines of output are given to say. It has to be
// called on the main goroutine; see init and mainThreadAttributes.
func startChild(say func(line string), name string, args ...string) (*child, error) {
	return startCommand(say, exec.Command(name, args...))
}

// startCommand is startChild for a command that has more than arguments.
func startCommand(say func(line string), cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, done: make(chan struct{})}
	out := &screen.Lines{Say: say}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.SysProcAttr = mainThreadAttributes()
	c.cmd.WaitDelay = childTimeout
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(cmd.Path), err)
	}
	go func() {
		defer close(c.done)
		c.err = c.cmd.Wait()
		out.Flush()
	}()
	return c, nil
}

// end asks the process to end, and makes it when it takes too long.
func (c *child) end() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	select {
	case <-c.done:
	case <-time.After(childTimeout):
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}

// died returns how a process ended that was not stopped.
func (c *child) died() error {
	if c.err == nil {
		return fmt.Errorf("%s ended by itself", filepath.Base(c.cmd.Path))
	}
	return fmt.Errorf("%s ended by itself: %w", filepath.Base(c.cmd.Path), c.err)
}

// runTool runs a program to its end, and gives what it printed, also if it failed, with its
// complaints as the error.
func runTool(ctx context.Context, name string, args ...string) ([]byte, error) {
	return runCommand(exec.CommandContext(ctx, name, args...))
}

// runCommand is runTool for a command that has more than arguments.
func runCommand(cmd *exec.Cmd) ([]byte, error) {
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out.Bytes(), nil
}
