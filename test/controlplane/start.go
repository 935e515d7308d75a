package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// timeout limits each wait of Start and StartPart. On an idle machine a wait takes a second or two.
const timeout = 3 * time.Minute

// errPortTaken tells Start to try once more on other ports.
var errPortTaken = errors.New("another program listens on the port that was chosen")

// Start starts a control plane. It returns when a Deployment would become Available, or, if parts are
// left out, when the other parts are healthy. It first builds the programs if they are not in the cache.
// The context only limits the start. The control plane ends with Stop, and also when this process ends,
// even by SIGKILL.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	o.Nodes = max(o.Nodes, 1)
	b, err := Build(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	return startOn(ctx, b, o, func() (*portSet, error) {
		return reservePorts(filepath.Join(cache, "ports"), portsPerControlPlane)
	})
}

// startOn starts a control plane on the ports that reserve returns. It tries again with other ports if
// another program, which does not use the lock files, has taken one in the meantime.
func startOn(ctx context.Context, b Binaries, o Options, reserve func() (*portSet, error)) (*ControlPlane, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		c, err := tryStart(ctx, b, o, reserve)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, errPortTaken) || attempt == attempts {
			return nil, fmt.Errorf("start control plane: %w", err)
		}
	}
}

func tryStart(ctx context.Context, b Binaries, o Options, reserve func() (*portSet, error)) (*ControlPlane, error) {
	ports, err := reserve()
	if err != nil {
		return nil, err
	}
	c, err := newControlPlane(b)
	if err != nil {
		ports.release()
		return nil, err
	}
	c.reserved = ports
	c.layout = newLayout(c.Dir(), b, o, ports.ports)
	if err := c.bringUp(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) bringUp(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return fmt.Errorf("prepare %s: %w", c.Dir(), err)
	}
	var tasks []func() error
	left := c.layout.options.Without
	for _, part := range Parts() {
		switch {
		case slices.Contains(left, part):
		case part == Etcd, part == APIServer: // the others need them
			if err := c.StartPart(ctx, part); err != nil {
				return err
			}
		default:
			tasks = append(tasks, func() error { return c.StartPart(ctx, part) })
		}
	}
	if !slices.Contains(left, Kwok) {
		tasks = append(tasks, func() error { return c.addNodes(ctx) })
	}
	if err := runConcurrently(tasks); err != nil || len(left) > 0 {
		return err
	}
	return c.wait(ctx, "the default namespace and the nodes", func(ctx context.Context) error {
		return c.client.usable(ctx, c.layout.options.Nodes)
	})
}

// runConcurrently runs tasks concurrently, and joins their errors.
func runConcurrently(tasks []func() error) error {
	var all sync.WaitGroup
	errs := make([]error, len(tasks))
	for i, task := range tasks {
		all.Go(func() { errs[i] = task() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// prepare writes the files that the parts read.
func (c *ControlPlane) prepare() (err error) {
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	if err := c.authority.writeServerFiles(c.Dir()); err != nil {
		return err
	}
	if err := os.WriteFile(c.layout.file(auditPolicyFile), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	for path, user := range map[string]string{
		c.Kubeconfig():                         AdminUser,
		c.layout.identityOf(ControllerManager): "system:kube-controller-manager",
		c.layout.identityOf(Scheduler):         "system:kube-scheduler",
		c.layout.identityOf(Kwok):              "kwok",
	} {
		var groups []string
		// The API server binds roles of their own to the others.
		if !strings.HasPrefix(user, "system:") {
			groups = []string{mastersGroup}
		}
		if err := c.writeKubeconfig(path, user, groups...); err != nil {
			return err
		}
	}
	own, err := c.authority.client(controlPlaneUser, mastersGroup)
	if err != nil {
		return err
	}
	config, err := c.authority.tls(own)
	if err != nil {
		return err
	}
	c.client = newClient(c.layout.server(), config)
	return nil
}

func (c *ControlPlane) addNodes(ctx context.Context) error {
	for n := range c.layout.options.Nodes {
		err := c.wait(ctx, "the API server to take a node", func(ctx context.Context) error {
			return c.client.createNode(ctx, n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wait polls until check returns nil, a part dies, or the timeout has passed.
func (c *ControlPlane) wait(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer context.AfterFunc(c.died, func() { stop(context.Cause(c.died)) })()
	return poll(ctx, what, check)
}
