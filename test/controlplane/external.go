package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// KubeconfigEnv names the kubeconfig of a cluster that FromEnv is to use instead
// of starting one. It is a variable of its own, so that the context in which a
// person happens to work is never taken by accident.
const KubeconfigEnv = "OPERETTA_TEST_KUBECONFIG"

// FromEnv returns the cluster that KubeconfigEnv names, or else starts a control
// plane. With a cluster of the environment, Stop leaves it as it is,
// KubeconfigFor impersonates the user, which its kubeconfig must allow, and what
// concerns parts and the audit log answers ErrExternal.
func FromEnv(ctx context.Context, o Options) (*ControlPlane, error) {
	path := os.Getenv(KubeconfigEnv)
	if path == "" {
		return Start(ctx, o)
	}
	if !isFile(path) {
		return nil, fmt.Errorf("%s names no file: %s", KubeconfigEnv, path)
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	b, err := externalBinaries(ctx, o)
	if err != nil {
		return nil, err
	}
	c, err := newControlPlane(b)
	if err != nil {
		return nil, err
	}
	c.external = path
	return c, nil
}

// externalBinaries are only a keeper, for the folder, and the kubectl at hand.
func externalBinaries(ctx context.Context, o Options) (Binaries, error) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return Build(ctx, o.Progress)
	}
	cache, err := cacheDir()
	if err != nil {
		return Binaries{}, err
	}
	dir, err := keeperUnit().ensure(ctx, cache, newProgress(o.Progress))
	if err != nil {
		return Binaries{}, err
	}
	return Binaries{Kubectl: kubectl, keeper: filepath.Join(dir, "keeper")}, nil
}

// writeImpersonation writes the external kubeconfig with its user acting as another.
func (c *ControlPlane) writeImpersonation(path, user string, groups ...string) error {
	cmd := exec.Command(c.Kubectl(), "--kubeconfig="+c.external, "config", "view", "--raw", "--minify", "--flatten", "-o", "json")
	content, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("read %s: %w", c.external, err)
	}
	var config struct {
		APIVersion     string          `json:"apiVersion"`
		Kind           string          `json:"kind"`
		CurrentContext string          `json:"current-context"`
		Clusters       json.RawMessage `json:"clusters"`
		Contexts       json.RawMessage `json:"contexts"`
		Users          []struct {
			Name string         `json:"name"`
			User map[string]any `json:"user"`
		} `json:"users"`
	}
	if err := json.Unmarshal(content, &config); err != nil {
		return fmt.Errorf("read %s: %w", c.external, err)
	}
	if len(config.Users) != 1 || config.Users[0].User == nil {
		return fmt.Errorf("%s has no user in its current context; give it one who may impersonate", c.external)
	}
	config.Users[0].User["as"] = user
	if len(groups) > 0 {
		config.Users[0].User["as-groups"] = groups
	}
	if content, err = json.MarshalIndent(config, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
