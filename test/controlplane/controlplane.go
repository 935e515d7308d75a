package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"operetta.dev/test/controlplane/internal/keeper"
)

// AdminUser is the user of the kubeconfig that Kubeconfig names. It is a member
// of system:masters, so RBAC never refuses it anything.
const AdminUser = "admin"

// controlPlaneUser makes the few requests of this package itself.
const controlPlaneUser = "operetta-controlplane"

const mastersGroup = "system:masters"

// Options say how a control plane is started. The zero value is a good one.
type Options struct {
	// Nodes is the number of simulated nodes; 0 means 1. Each has 32 CPUs, 64Gi
	// of memory and room for 1000 pods.
	Nodes int
	// Audit makes the API server record every request, for AuditEvents.
	Audit bool
	// ExtraArgs are appended to the arguments of a part.
	ExtraArgs map[Part][]string
	// Progress is told how the first, long build goes; nil means stderr.
	Progress io.Writer
}

// ControlPlane is a running control plane. Its methods may be called at the same time.
type ControlPlane struct {
	layout    layout
	authority *authority
	keeper    *keeperProcess
	client    *client
	reserved  *portSet

	// died is cancelled, with the cause, when a part ends that nobody stopped.
	died context.Context
	die  context.CancelCauseFunc

	mu         sync.Mutex
	running    map[Part]context.CancelFunc
	identities int
}

// Start starts a control plane and returns when a Deployment made in it would
// become Available. It first builds the programs if they are not in the cache.
// Stop ends it; so does the end of this process, however it comes about.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	o.Nodes = max(o.Nodes, 1)
	binaries, err := Build(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	const attempts = 3
	for attempt := 1; ; attempt++ {
		c, err := startOn(ctx, binaries, o)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, errPortTaken) || attempt == attempts {
			return nil, fmt.Errorf("start control plane: %w", err)
		}
	}
}

// startOn starts a control plane on ports of its own choice.
func startOn(ctx context.Context, b Binaries, o Options) (_ *ControlPlane, err error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	ports, err := reservePorts(filepath.Join(cache, "ports"), portsPerControlPlane)
	if err != nil {
		return nil, err
	}
	k, err := startKeeper(b.keeper)
	if err != nil {
		ports.release()
		return nil, err
	}
	c := &ControlPlane{
		layout: newLayout(k.dir, b, o, ports.ports), keeper: k, reserved: ports,
		running: map[Part]context.CancelFunc{},
	}
	c.died, c.die = context.WithCancelCause(context.Background())
	if err := c.bringUp(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) bringUp(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return fmt.Errorf("prepare %s: %w", c.layout.dir, err)
	}
	for _, part := range []Part{Etcd, APIServer} {
		if err := c.StartPart(ctx, part); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	rest := []Part{ControllerManager, Scheduler, Kwok}
	errs := make([]error, len(rest)+1)
	for i, part := range rest {
		all.Go(func() { errs[i] = c.StartPart(ctx, part) })
	}
	all.Go(func() { errs[len(rest)] = c.addNodes(ctx) })
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.wait(ctx, time.Minute, "the default namespace and the nodes", func(ctx context.Context) error {
		return c.client.usable(ctx, c.layout.options.Nodes)
	})
}

// prepare writes the files that the parts read.
func (c *ControlPlane) prepare() (err error) {
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	if err := c.authority.writeServerFiles(c.layout.dir); err != nil {
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
		err := c.wait(ctx, time.Minute, "the API server to take a node", func(ctx context.Context) error {
			return c.client.createNode(ctx, n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wait polls until check is nil, a part dies, or the time is up.
func (c *ControlPlane) wait(ctx context.Context, limit time.Duration, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer context.AfterFunc(c.died, func() { stop(context.Cause(c.died)) })()
	return poll(ctx, what, check)
}

// Kubeconfig is the path of a kubeconfig for AdminUser. The user's own
// kubeconfig is neither read nor changed.
func (c *ControlPlane) Kubeconfig() string { return c.layout.file("kubeconfig") }

// KubeconfigFor writes a kubeconfig for another user, who is a member of groups,
// and returns its path. RBAC is on: such a user may do what a role binding says.
func (c *ControlPlane) KubeconfigFor(user string, groups ...string) (string, error) {
	c.mu.Lock()
	c.identities++
	path := c.layout.file(fmt.Sprintf("kubeconfig-%d", c.identities))
	c.mu.Unlock()
	if err := c.writeKubeconfig(path, user, groups...); err != nil {
		return "", fmt.Errorf("kubeconfig for user %q: %w", user, err)
	}
	return path, nil
}

func (c *ControlPlane) writeKubeconfig(path, user string, groups ...string) error {
	identity, err := c.authority.client(user, groups...)
	if err != nil {
		return err
	}
	content, err := c.authority.kubeconfig(c.layout.server(), user, identity)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// Kubectl is the path of a kubectl of the control plane's version.
func (c *ControlPlane) Kubectl() string { return c.layout.binaries.Kubectl }

// Dir is the folder that holds everything of the control plane and that Stop removes.
func (c *ControlPlane) Dir() string { return c.layout.dir }

// Log is the path of a part's output, of all its runs.
func (c *ControlPlane) Log(part Part) string { return c.layout.log(part) }

// Wait blocks until ctx is done or a part ends that nobody stopped, and says which.
func (c *ControlPlane) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.died.Done():
		return context.Cause(c.died)
	}
}

// Stop ends every part and removes the folder. It may be called more than once.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	for _, forget := range c.running {
		forget()
	}
	clear(c.running)
	c.mu.Unlock()
	err := c.keeper.close()
	c.reserved.release()
	return err
}

// errPortTaken tells Start to try once more on other ports.
var errPortTaken = errors.New("another program listens on the port that was chosen")

// StartPart starts a part that was stopped, as it was and on the same port, and
// returns when it is healthy.
func (c *ControlPlane) StartPart(ctx context.Context, part Part) error {
	process := keeper.Process{
		Name: string(part),
		Args: c.layout.command(part),
		// Nothing of the user's environment, so that no part finds the user's clusters.
		Env: []string{"HOME=" + c.layout.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + c.layout.dir},
		Log: c.layout.log(part),
	}
	c.mu.Lock()
	if _, ok := c.running[part]; ok {
		c.mu.Unlock()
		return fmt.Errorf("%s is running already; stop it first", part)
	}
	if _, err := c.keeper.start(process); err != nil {
		c.mu.Unlock()
		return fmt.Errorf("start %w", err)
	}
	watched, forget := context.WithCancel(context.Background())
	c.running[part] = forget
	c.mu.Unlock()
	go c.watch(watched, part)
	return c.wait(ctx, time.Minute, string(part)+" to be healthy (its log: "+c.layout.log(part)+")", func(ctx context.Context) error {
		return c.client.healthy(ctx, c.layout.health(part))
	})
}

// watch notices that a part ends unless it is told to forget it.
func (c *ControlPlane) watch(ctx context.Context, part Part) {
	result, err := c.keeper.wait(ctx, string(part))
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.die(fmt.Errorf("the keeper ended: %w", err))
		return
	}
	c.mu.Lock()
	delete(c.running, part)
	c.mu.Unlock()
	for _, port := range c.layout.ports(part) {
		if !isFree(port) {
			c.die(fmt.Errorf("%s: %w", part, errPortTaken))
			return
		}
	}
	c.die(fmt.Errorf("%s ended by itself: %s; its last words:\n%s", part, result, lastOf(c.layout.log(part))))
}

func lastOf(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	var t tail
	_, _ = t.Write(content)
	return t.String()
}

// StopPart ends a part at once, as a crash would, and returns when it is gone.
func (c *ControlPlane) StopPart(part Part) error {
	c.mu.Lock()
	forget, ok := c.running[part]
	delete(c.running, part)
	c.mu.Unlock()
	if !ok {
		return fmt.Errorf("%s is not running", part)
	}
	forget()
	return c.keeper.kill(string(part))
}

// PausePart freezes a part: it keeps its connections but answers nothing, as an
// overloaded server would.
func (c *ControlPlane) PausePart(part Part) error {
	return c.keeper.signal(string(part), syscall.SIGSTOP)
}

// ResumePart ends a pause.
func (c *ControlPlane) ResumePart(part Part) error {
	return c.keeper.signal(string(part), syscall.SIGCONT)
}
