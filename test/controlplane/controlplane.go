package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// AdminUser is the user of the kubeconfig that Kubeconfig names. It is a member
// of system:masters, so RBAC never refuses it anything.
const AdminUser = "admin"

// controlPlaneUser makes the few requests of this package itself.
const controlPlaneUser = "operetta-controlplane"

const mastersGroup = "system:masters"

// FeatureGatesVariable names an environment variable with feature gates of the API servers of tests that choose none.
const FeatureGatesVariable = "OPERETTA_TEST_FEATURE_GATES"

// Options say how a control plane is started. The zero value is a good one.
type Options struct {
	// Nodes is the number of simulated nodes, node-0 and so on; 0 means 1. Each
	// has 32 CPUs, 64Gi of memory and room for 1000 pods.
	Nodes int
	// Without are parts that are not started. Then nobody waits for a Deployment to
	// become Available, as Start does otherwise; without kwok there are no nodes.
	Without []Part
	// Audit makes the API server record every request, for AuditEvents.
	Audit bool
	// FeatureGates are those of the API server, as in "CBORServingAndStorage=true"; "" means those that FeatureGatesVariable names.
	FeatureGates string
	// ExtraArgs are appended to the arguments of a part, and win over them.
	ExtraArgs map[Part][]string
	// Progress is told how the first, long build goes; nil means stderr.
	Progress io.Writer
}

// ControlPlane is a running control plane. Its methods may be called at the same
// time. Start makes one; the zero value is of no use.
type ControlPlane struct {
	layout    layout
	authority *authority
	keeper    *keeperProcess
	client    *client
	reserved  *portSet
	// external is the kubeconfig of a cluster that is used instead; usually empty.
	external string

	// died is cancelled, with the cause, when a part ends unexpectedly.
	died context.Context
	die  context.CancelCauseFunc

	mu         sync.Mutex
	running    map[Part]context.CancelFunc // how to forget about each that runs
	identities int
	marks      int
}

// newControlPlane returns a control plane with a keeper and a folder, but without running parts.
func newControlPlane(b Binaries) (*ControlPlane, error) {
	k, err := startKeeper(b.keeper)
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{
		layout:  layout{dir: k.dir, binaries: b},
		keeper:  k,
		running: map[Part]context.CancelFunc{},
	}
	c.died, c.die = context.WithCancelCause(context.Background())
	return c, nil
}

// Kubeconfig is the path of a kubeconfig for AdminUser. The user's own
// kubeconfig is neither read nor changed.
func (c *ControlPlane) Kubeconfig() string {
	if c.external != "" {
		return c.external
	}
	return c.layout.file("kubeconfig")
}

// KubeconfigFor writes a kubeconfig for another user, who is a member of groups,
// and returns its path. RBAC is on: such a user may do what a role binding says
// and no more, so a test can run a program under exactly the role that it ships.
func (c *ControlPlane) KubeconfigFor(user string, groups ...string) (string, error) {
	c.mu.Lock()
	c.identities++
	path := c.layout.file(fmt.Sprintf("kubeconfig-%d", c.identities))
	c.mu.Unlock()
	write := c.writeKubeconfig
	if c.external != "" {
		write = c.writeImpersonation
	}
	if err := write(path, user, groups...); err != nil {
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

// Kubectl is the path of a kubectl that fits the control plane.
func (c *ControlPlane) Kubectl() string { return c.layout.binaries.Kubectl }

// Dir is the folder that holds everything of the control plane. Stop removes it.
func (c *ControlPlane) Dir() string { return c.layout.dir }

// Log is the path of a part's output, of all its runs one after the other.
func (c *ControlPlane) Log(part Part) string { return c.layout.log(part) }

// Wait blocks until ctx is done or a part ends that nobody stopped, and says
// which. After that the control plane is only good for Stop.
func (c *ControlPlane) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.died.Done():
		return context.Cause(c.died)
	}
}

// Stop ends every part at once and removes the folder. It may be called again.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	for _, forget := range c.running {
		forget()
	}
	clear(c.running)
	c.mu.Unlock()
	err := c.keeper.close()
	c.reserved.release()
	// The keeper has removed it, unless someone killed the keeper.
	return errors.Join(err, os.RemoveAll(c.layout.dir))
}
