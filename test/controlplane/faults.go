package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"operetta.dev/test/controlplane/internal/keeper"
)

// ErrExternal is what is answered for a cluster that this package did not start.
var ErrExternal = errors.New("the cluster was not started by this package, which cannot touch its parts; unset " + KubeconfigEnv)

// StartPart starts a part that was stopped, as it was and on the same port, and
// returns when it is healthy. The other parts notice in their own time: their
// retries grow further apart the longer a part was away, up to half a minute for
// clients of the API server and two for the API server as a client of etcd.
func (c *ControlPlane) StartPart(ctx context.Context, part Part) error {
	if c.external != "" {
		return ErrExternal
	}
	if part == Kwok {
		if err := c.client.releaseNodes(ctx); err != nil {
			return fmt.Errorf("start %s: release its nodes (is %s up?): %w", part, APIServer, err)
		}
	}
	forgotten, err := c.launch(part)
	if err != nil {
		return fmt.Errorf("start %s: %w", part, err)
	}
	go c.watch(forgotten, part)
	err = c.wait(ctx, string(part)+" to be healthy", func(ctx context.Context) error {
		return c.client.healthy(ctx, c.layout.health(part))
	})
	if err != nil && c.died.Err() == nil {
		return fmt.Errorf("%w; its last words:\n%s", err, c.lastWords(part))
	}
	return err
}

// launch starts the process of a part. The context is done when the part is to
// be forgotten, because its end will be intended.
func (c *ControlPlane) launch(part Part) (forgotten context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.running[part]; ok {
		return nil, errors.New("it is running; stop it first")
	}
	err = c.keeper.start(keeper.Process{
		Name: string(part),
		Args: c.layout.command(part),
		// Nothing of the user's environment, so that no part finds the user's clusters.
		// The garbage collector is a fifth of the API server's work unless it is given memory.
		Env: []string{"HOME=" + c.Dir(), "TMPDIR=" + c.Dir(), "GOGC=300"},
		Log: c.Log(part),
	})
	if err != nil {
		return nil, err
	}
	forgotten, c.running[part] = context.WithCancel(context.Background())
	return forgotten, nil
}

// watch notices that a part ends, until it is forgotten.
func (c *ControlPlane) watch(forgotten context.Context, part Part) {
	result, err := c.keeper.wait(forgotten, string(part))
	switch {
	case forgotten.Err() != nil:
	case err != nil:
		c.die(fmt.Errorf("the keeper of the processes ended: %w", err))
	case c.portTaken(part):
		c.die(fmt.Errorf("%s: %w", part, errPortTaken))
	default:
		c.die(fmt.Errorf("%s ended by itself: %s; its last words:\n%s", part, result, c.lastWords(part)))
	}
}

// portTaken tells whether others listen on the ports of a part that has ended,
// which is then the reason. It looks at the ports since no exit code says it.
func (c *ControlPlane) portTaken(part Part) bool {
	for _, port := range c.layout.ports(part) {
		if !isFree(port) {
			return true
		}
	}
	return false
}

func (c *ControlPlane) lastWords(part Part) string {
	content, err := os.ReadFile(c.Log(part))
	if err != nil {
		return err.Error()
	}
	var t tail
	_, _ = t.Write(content)
	return t.String()
}

// StopPart ends a part at once, as a crash would, and returns when it is gone.
// What etcd has stored stays.
func (c *ControlPlane) StopPart(part Part) error {
	if err := c.expectRunning(part); err != nil {
		return fmt.Errorf("stop %s: %w", part, err)
	}
	c.mu.Lock()
	c.running[part]()
	delete(c.running, part)
	c.mu.Unlock()
	return c.keeper.kill(string(part))
}

// PausePart freezes a part: it keeps its port and its connections but answers
// nothing, as a server that hangs.
func (c *ControlPlane) PausePart(part Part) error { return c.signal(part, syscall.SIGSTOP) }

// ResumePart ends a pause.
func (c *ControlPlane) ResumePart(part Part) error { return c.signal(part, syscall.SIGCONT) }

func (c *ControlPlane) signal(part Part, s syscall.Signal) error {
	if err := c.expectRunning(part); err != nil {
		return fmt.Errorf("signal %s: %w", part, err)
	}
	return c.keeper.signal(string(part), s)
}

func (c *ControlPlane) expectRunning(part Part) error {
	if c.external != "" {
		return ErrExternal
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.running[part]; !ok {
		return errors.New("it is not running; start it first")
	}
	return nil
}
