// Package gotool runs the go command so that it can be interrupted: neither it nor the compilers that it has
// started go on when the context ends, and the go command has cleaned up after itself by then.
//
// It imports only the standard library, like all that shows how a build goes.
package gotool

import (
	"context"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// killDelay is how long the go command and its compilers may take to end when they are interrupted. They take a
// moment, unless the machine is very busy.
const killDelay = 10 * time.Second

// pipeDelay is how long the output of a command that has ended is waited for: what still holds it does not end by itself.
const pipeDelay = time.Second

// Run runs a go command until it ends, or until the context does. Then it ends everything that the command has
// started, and returns the cause of that. A niceness above 0 makes it yield the processors to others,
// as nice -n does.
func Run(ctx context.Context, cmd *exec.Cmd, niceness int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// Linux kills the command when the thread that started it ends, so that it does not go on when this
	// process is killed. The thread stays as long as this goroutine has it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = pipeDelay
	yield(cmd, niceness)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended, quiet := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(quiet)
		endGroup(ctx, cmd.Process.Pid, ended)
	}()
	err := cmd.Wait()
	close(ended)
	<-quiet
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// yield makes a command, and what it starts, yield the processors to others. It is a courtesy: where there is no nice,
// the command runs without.
func yield(cmd *exec.Cmd, niceness int) {
	nice, err := exec.LookPath("nice")
	if niceness == 0 || err != nil || cmd.Err != nil {
		return
	}
	cmd.Args = append([]string{"nice", "-n", strconv.Itoa(niceness), cmd.Path}, cmd.Args[1:]...)
	cmd.Path = nice
}

// endGroup interrupts a process group when the context ends, and kills what is left of it once the command has
// ended, or has taken too long. It does nothing if the command ends first.
func endGroup(ctx context.Context, group int, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	_ = syscall.Kill(-group, syscall.SIGINT) // whoever is gone already needs no signal
	late := time.NewTimer(killDelay)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
	}
	_ = syscall.Kill(-group, syscall.SIGKILL)
}
