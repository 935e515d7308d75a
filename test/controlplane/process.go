package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os/exec"
	"sync"
	"syscall"

	"operetta.dev/test/controlplane/internal/keeper"
)

// keeperProcess is the owner's side of the keeper: the calls, and the pipe
// whose closing ends everything.
type keeperProcess struct {
	cmd    *exec.Cmd
	client *rpc.Client
	stderr *bytes.Buffer
	dir    string

	once sync.Once
	err  error
}

// startKeeper runs the keeper binary and learns which folder it made.
func startKeeper(binary string) (*keeperProcess, error) {
	k := &keeperProcess{cmd: exec.Command(binary), stderr: &bytes.Buffer{}}
	// A session of its own keeps a terminal's Ctrl-C, which is meant for the owner, from it.
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	k.cmd.Stderr = k.stderr
	stdin, err := k.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := k.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := k.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	k.client = rpc.NewClientWithCodec(jsonrpc.NewClientCodec(pipes{stdout, stdin}))
	if err := k.client.Call(keeper.Service+".Dir", struct{}{}, &k.dir); err != nil {
		return nil, errors.Join(fmt.Errorf("ask the keeper for its folder: %w", err), k.close())
	}
	return k, nil
}

// pipes joins the keeper's stdout and stdin; closing it closes the stdin.
type pipes struct {
	io.Reader
	io.WriteCloser
}

func (k *keeperProcess) start(p keeper.Process) error {
	return k.client.Call(keeper.Service+".Start", p, &struct{}{})
}

func (k *keeperProcess) kill(name string) error {
	return k.client.Call(keeper.Service+".Kill", name, &struct{}{})
}

func (k *keeperProcess) signal(name string, s syscall.Signal) error {
	return k.client.Call(keeper.Service+".Signal", keeper.Signal{Name: name, Number: int(s)}, &struct{}{})
}

// wait blocks until the named child has ended and says how.
func (k *keeperProcess) wait(ctx context.Context, name string) (string, error) {
	var result string
	call := k.client.Go(keeper.Service+".Wait", name, &result, make(chan *rpc.Call, 1))
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-call.Done:
		return result, call.Error
	}
}

// close ends the keeper, which kills its children and removes the folder, and
// returns when it is gone.
func (k *keeperProcess) close() error {
	k.once.Do(func() {
		k.client.Close()
		if err := k.cmd.Wait(); err != nil {
			k.err = fmt.Errorf("keeper: %w: %s", err, bytes.TrimSpace(k.stderr.Bytes()))
		}
	})
	return k.err
}
