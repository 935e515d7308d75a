// Package keeper is the small process that owns every process of one control
// plane, so that none of them outlives the program that asked for it.
//
//	owner (a test, the CLI) ──stdin/stdout──▶ keeper ──▶ etcd, kube-apiserver, ...
//
// The owner holds the write end of the keeper's standard input. However the
// owner ends, also by SIGKILL, the kernel closes that end; the keeper then
// kills its children, removes the folder it made, and exits. Should the keeper
// itself be killed, its children die with it where the kernel offers that
// (Linux: the parent-death signal).
//
// It is not a general supervisor: it restarts nothing and knows nothing of
// Kubernetes. The protocol is net/rpc with JSON over stdin and stdout; the
// methods are those of Keeper. The package is compiled into its own binary from
// source that the parent package embeds, so it imports only the standard library.
package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// Service is the name under which the methods of Keeper are served.
const Service = "Keeper"

// Process describes a child to start.
type Process struct {
	// Name identifies the child in later calls; one child per name lives at a time.
	Name string
	// Args is the program followed by its arguments.
	Args []string
	// Env is the child's whole environment.
	Env []string
	// Log is the file to which its stdout and stderr are appended.
	Log string
}

// Signal names a child and what to send it.
type Signal struct {
	Name   string
	Number int
}

// Keeper starts and stops children. Its exported methods are the protocol.
type Keeper struct {
	dir string
	run chan func()

	mu       sync.Mutex
	children map[string]*child
}

type child struct {
	cmd    *exec.Cmd
	done   chan struct{}
	result string
}

// New returns a Keeper whose folder is dir. Children are started on the
// goroutine that calls Work.
func New(dir string) *Keeper {
	return &Keeper{dir: dir, run: make(chan func()), children: map[string]*child{}}
}

// Work runs what must run on one fixed thread until stop is closed. The
// parent-death signal is sent when the thread that started a child ends, not
// the process, so the caller locks its goroutine to the main thread.
func (k *Keeper) Work(stop <-chan struct{}) {
	for {
		select {
		case f := <-k.run:
			f()
		case <-stop:
			return
		}
	}
}

// Dir answers the folder that the keeper made and will remove.
func (k *Keeper) Dir(_ struct{}, dir *string) error {
	*dir = k.dir
	return nil
}

// Start starts a child.
func (k *Keeper) Start(p Process, _ *struct{}) error {
	if len(p.Args) == 0 {
		return errors.New("no program given")
	}
	done := make(chan error, 1)
	k.run <- func() { done <- k.start(p) }
	return <-done
}

func (k *Keeper) start(p Process) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c, ok := k.children[p.Name]; ok && c.running() {
		return errors.New("it is running already")
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open its log: %w", err)
	}
	defer log.Close()

	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = k.dir, p.Env, log, log
	cmd.SysProcAttr = childAttributes()
	if err := cmd.Start(); err != nil {
		return err
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	k.children[p.Name] = c
	go c.wait()
	return nil
}

func (c *child) wait() {
	c.result = "exit status 0"
	if err := c.cmd.Wait(); err != nil {
		c.result = err.Error()
	}
	close(c.done)
}

func (c *child) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

func (k *Keeper) child(name string) (*child, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c, ok := k.children[name]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("%s: was never started", name)
}

// Wait answers how the named child ended, as soon as it has.
func (k *Keeper) Wait(name string, result *string) error {
	c, err := k.child(name)
	if err != nil {
		return err
	}
	<-c.done
	*result = c.result
	return nil
}

// Signal sends a signal to the named child; one that has ended is no error. After SIGSTOP it returns when the child
// has stopped: on a busy machine its threads go on for a while.
func (k *Keeper) Signal(s Signal, _ *struct{}) error {
	c, err := k.child(s.Name)
	if err != nil {
		return err
	}
	if err := c.cmd.Process.Signal(syscall.Signal(s.Number)); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	if syscall.Signal(s.Number) == syscall.SIGSTOP {
		awaitStopped(c.cmd.Process.Pid)
	}
	return nil
}

// Kill ends the named child at once and returns when it is gone.
func (k *Keeper) Kill(name string, _ *struct{}) error {
	c, err := k.child(name)
	if err != nil {
		return err
	}
	c.kill()
	return nil
}

func (c *child) kill() {
	// A child that has ended already is what was asked for.
	_ = c.cmd.Process.Kill()
	<-c.done
}

// Close kills every child and then removes the folder.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all sync.WaitGroup
	for _, c := range k.children {
		all.Go(c.kill)
	}
	all.Wait()
	return os.RemoveAll(k.dir)
}

// allStopped reports whether the states of threads in files of /proc are all those of a stopped or ended one.
func allStopped(threads []string) bool {
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The state is behind the name, which may have parentheses itself.
		_, state, found := bytes.Cut(text[max(0, bytes.LastIndexByte(text, ')')):], []byte(") "))
		if found && len(state) > 0 && !strings.ContainsRune("TtZX", rune(state[0])) {
			return false
		}
	}
	return true
}
