package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func expectError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error is %v, not %v", what, err, want)
	}
}

func TestAPIServerComesBackOnItsPortWithItsObjects(t *testing.T) {
	t.Parallel()
	c := start(t, Options{})
	k := admin(t, c)
	k.run("create", "deployment", "web", "--image=any/name")
	k.available("web")

	if err := c.StopPart(APIServer); err != nil {
		t.Fatal(err)
	}
	if _, err := k.try("get", "deployments"); err == nil {
		t.Fatal("the stopped API server answers")
	}
	if err := c.StopPart(APIServer); err == nil {
		t.Error("what is stopped can be stopped")
	}
	if err := c.StartPart(t.Context(), APIServer); err != nil {
		t.Fatal(err)
	}
	if err := c.StartPart(t.Context(), APIServer); err == nil {
		t.Error("what runs can be started")
	}
	k.run("scale", "deployment/web", "--replicas=3")
	k.until("3", "{.status.readyReplicas}", "deployment", "web")
}

func TestEveryPartCanBeStoppedAndStarted(t *testing.T) {
	t.Parallel()
	c := start(t, Options{})
	k := admin(t, c)
	for _, part := range Parts() {
		if err := c.StopPart(part); err != nil {
			t.Fatal(err)
		}
		if err := c.StartPart(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	k.run("create", "deployment", "web", "--image=any/name", "--replicas=3")
	k.available("web")
}

func TestPausedAPIServerHangsAndThenAnswers(t *testing.T) {
	t.Parallel()
	c := start(t, Options{})
	if err := c.PausePart(APIServer); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	expectError(t, "request to the paused server", c.client.healthy(ctx, "/readyz"), context.DeadlineExceeded)
	if err := c.ResumePart(APIServer); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return c.client.healthy(t.Context(), "/readyz") })
}

func TestPartThatEndsByItselfIsToldWithItsLastWords(t *testing.T) {
	t.Parallel()
	c := start(t, Options{})
	// Behind the back of c.
	if err := c.keeper.kill(string(Scheduler)); err != nil {
		t.Fatal(err)
	}
	err := c.Wait(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "kube-scheduler ended by itself: signal: killed") {
		t.Errorf("wait: %v", err)
	}
}

func TestStartTellsWhatAPartSaidAgainstItsArguments(t *testing.T) {
	t.Parallel()
	c, err := Start(t.Context(), Options{ExtraArgs: map[Part][]string{Etcd: {"--no-such-flag"}}})
	if err == nil {
		t.Fatal("started", c.Stop())
	}
	if !strings.Contains(err.Error(), "etcd ended by itself") || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("error: %v", err)
	}
}

func TestPortThatAnotherProgramTookLeadsToOtherPorts(t *testing.T) {
	t.Parallel()
	b, err := Build(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	cache, err := cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	taken := listen(t)
	attempt := 0
	reserve := func() (*portSet, error) {
		s, err := reservePorts(filepath.Join(cache, "ports"), portsPerControlPlane)
		if attempt++; err == nil && attempt == 1 {
			s.ports[2] = taken
		}
		return s, err
	}
	c, err := startOn(t.Context(), b, Options{Nodes: 1}, reserve)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	}()
	if attempt != 2 {
		t.Errorf("%d attempts", attempt)
	}
	admin(t, c).run("get", "namespaces")
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	c := start(t, Options{})
	k := c.keeper.cmd.Process.Pid
	if got := len(processes(t, c.Dir(), k)); got != len(Parts())+1 {
		t.Fatalf("%d processes", got)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	expectNothingLeft(t, c.Dir(), k)
	if _, err := os.Stat(filepath.Dir(c.Kubeconfig())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder: %v", err)
	}
}
