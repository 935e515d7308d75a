package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"operetta.dev/test/machine"
)

// TestMain makes the test binary act as the owner process that a test kills, if a variable says so.
func TestMain(m *testing.M) {
	if os.Getenv(ownerEnv) != "" {
		runAsOwner()
	}
	os.Exit(m.Run())
}

// start starts a control plane that ends with the test.
func start(t *testing.T, o Options) *ControlPlane {
	t.Helper()
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return c
}

// cluster is what a user of one kubeconfig does with kubectl.
type cluster struct {
	t          *testing.T
	kubectl    string
	kubeconfig string
}

func admin(t *testing.T, c *ControlPlane) cluster {
	t.Helper()
	return cluster{t: t, kubectl: c.Kubectl(), kubeconfig: c.Kubeconfig()}
}

// in is the same in a test within the test.
func (k cluster) in(t *testing.T) cluster {
	t.Helper()
	k.t = t
	return k
}

// as is the view of another user.
func as(t *testing.T, c *ControlPlane, user string, groups ...string) cluster {
	t.Helper()
	path, err := c.KubeconfigFor(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return cluster{t: t, kubectl: c.Kubectl(), kubeconfig: path}
}

func (k cluster) try(args ...string) (string, error) {
	cmd := exec.CommandContext(k.t.Context(), k.kubectl, append([]string{"--kubeconfig=" + k.kubeconfig}, args...)...)
	// kubectl caches discovery in the home folder.
	cmd.Env = append(os.Environ(), "HOME="+k.t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(string(out)), err
}

func (k cluster) run(args ...string) string {
	k.t.Helper()
	out, err := k.try(args...)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

// until waits for a field, or several, to have a value.
func (k cluster) until(want, jsonpath string, object ...string) {
	k.t.Helper()
	eventually(k.t, func() error {
		got, err := k.try(append([]string{"get", "-o", "jsonpath=" + jsonpath}, object...)...)
		if err == nil && got != want {
			err = fmt.Errorf("%s of %s is %q, not yet %q", jsonpath, strings.Join(object, " "), got, want)
		}
		return err
	})
}

func (k cluster) available(deployment string) {
	k.t.Helper()
	k.run("wait", "--for=condition=Available", "--timeout="+machine.Patience.String(), "deployment/"+deployment)
}

// eventually polls until check is nil, for machine.Patience at most.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), machine.Patience)
	defer cancel()
	if err := poll(ctx, "the test", func(context.Context) error { return check() }); err != nil {
		t.Fatal(err)
	}
}
