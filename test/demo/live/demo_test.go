package live

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"operetta.dev/test/controlplane"
	"operetta.dev/test/machine"
)

func TestDemoEndsWellWhenTheSampleIsReady(t *testing.T) {
	t.Parallel()
	s := begin(t, "--once")
	s.expectExit(0)
	for _, want := range []string{"WebApp/nginx-app in default  Ready  3/3 components", "└─ web  ✓ Verified", "Deployment/nginx-app  ready", "Ready after "} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("it did not say %q", want)
		}
	}
	if strings.Contains(s.String(), "review") {
		t.Error("it played a preview, although the control plane is built")
	}
	s.expectNothingLeft()
}

func TestAnInstalledOperatorOutlivesItsLeaderAndTheRegistry(t *testing.T) {
	t.Parallel()
	s := begin(t, "--installed")
	s.expectExit(0)
	s.expectInOrder(
		"✓ start two processes of the operator", "Package webapp is served after ", "WebApp/nginx-app in default  Ready  3/3 components",
		"✓ start a registry", "✓ push a package to it", "✓ apply a Package that names it", "Package greeter at sha256:",
		"Greeter/hello in default  Ready  2/2 components", "Deployment/hello  ready", "nothing listens at 127.0.0.1:",
		"operetta-1 was killed, and operetta-2 leads after ", "Deployment/nginx-app  ready", "✓ scale WebApp/nginx-app",
		"Greeter/hello in default  Ready  2/2 components", "Deployment/hello  ready", "✓ scale Greeter/hello, without the registry", "RegistryUnavailable",
		"  1 new, 4 old", "  5 new, 0 old", "is Promoted after ", "  1 new, 4 old", "  0 new, 5 old", "is RolledBack after ",
		"nothing is left after ", "Done after ",
	)
	// A process that leads may say when it is told to end that it leads no longer.
	if onItsWay, _, _ := strings.Cut(s.String(), "Done after "); strings.Contains(onItsWay, "level=ERROR") {
		t.Error("something went wrong on the way")
	}
	if strings.Contains(s.String(), "forbidden") {
		t.Error("the roles lack a permission")
	}
	s.expectNothingLeft()
}

func TestRunStaysAndShowsWhatHappens(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.await("export KUBECONFIG=")
	s.await("Ctrl-C ends it")
	before := s.ask("get", "deployment", "nginx-app", "-o", "jsonpath={.metadata.uid}")
	s.ask("delete", "deployment", "nginx-app")
	s.ask("patch", "webapp", "nginx-app", "--type=merge", "-p", `{"spec":{"replicas":5,"ingress":{"enabled":true}}}`)
	s.await("  · Ingress/nginx-app")
	eventually(t, "the Deployment to have 5 replicas", func() error {
		if got := s.ask("get", "deployment", "nginx-app", "--ignore-not-found", "-o", "jsonpath={.status.readyReplicas}"); got != "5" {
			return fmt.Errorf("%q are ready", got)
		}
		return nil
	})
	if after := s.ask("get", "deployment", "nginx-app", "-o", "jsonpath={.metadata.uid}"); after == before {
		t.Error("the Deployment that was deleted is still there")
	}
	s.ask("delete", "webapp", "nginx-app")
	s.await("WebApp/nginx-app  does not exist")
	s.signal(syscall.SIGINT)
	s.expectExit(0)
	s.expectNothingLeft()
}

func TestRunThatIsKilledLeavesNothing(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.await("Ctrl-C ends it")
	s.signal(syscall.SIGKILL)
	<-s.done
	s.expectNothingLeft()
}

func TestDemoThatIsInterruptedOnItsWaySaysSo(t *testing.T) {
	t.Parallel()
	s := begin(t, "--once")
	s.await("start the operators")
	s.signal(syscall.SIGTERM)
	s.expectExit(130)
	s.expectNothingLeft()
}

func TestDemoThatDoesNotGetThereFails(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	sample := t.TempDir() + "/webapp.yaml"
	const wrong = "apiVersion: example.com/v1\nkind: WebApp\nmetadata: {name: shop}\nspec: {image: nginx, replicas: 500}\n"
	if err := os.WriteFile(sample, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	s := begin(t, "--once", "--sample", sample)
	s.expectExit(1)
	if !strings.Contains(s.String(), "failed: ") || !strings.Contains(s.String(), "spec.replicas") {
		t.Error("it did not say why")
	}
	s.expectNothingLeft()
}

func TestDemoThatTakesTooLongFails(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := begin(t, "--once", "--timeout", "1ms")
	s.expectExit(1)
	if !strings.Contains(s.String(), "failed: waited 0.0 s for the operator") {
		t.Error("it did not say what it waited for")
	}
	s.expectNothingLeft()
}

func TestDemoOnAClusterThatIsGivenLeavesItAsItIs(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	cp, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cp.Stop() }()
	s := begin(t, "--once", "--kubeconfig", cp.Kubeconfig())
	s.expectExit(0)
	if !strings.Contains(s.String(), "WebApp/nginx-app stays in your cluster") {
		t.Error("it did not say what it leaves")
	}
	out, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", cp.Kubeconfig(), "--cache-dir", t.TempDir(), "get", "webapp", "nginx-app").CombinedOutput()
	if err != nil {
		t.Errorf("kubectl get webapp: %v: %s", err, out)
	}
}
