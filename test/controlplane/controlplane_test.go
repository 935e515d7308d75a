package controlplane

import (
	"strings"
	"testing"
	"time"

	"operetta.dev/test/machine"
)

func TestDeploymentOfThreeBecomesAvailableSoonAfterStart(t *testing.T) {
	if _, err := Build(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	c := start(t, Options{})
	ready := time.Since(begin)
	t.Logf("ready after %s", ready)
	if limit := machine.Limit(15 * time.Second); ready > limit {
		t.Errorf("ready after %s, more than %s", ready, limit)
	}
	k := admin(t, c)
	k.run("create", "deployment", "web", "--image=any/name", "--replicas=3")
	k.available("web")
	k.until("3", "{.status.readyReplicas}", "deployment", "web")
	if got := k.run("get", "nodes", "-o", "name"); got != "node/node-0" {
		t.Errorf("nodes: %q", got)
	}
}

func TestPartsThatAreLeftOutCanBeStartedLater(t *testing.T) {
	t.Parallel()
	c := start(t, Options{Without: []Part{ControllerManager, Scheduler, Kwok}})
	k := admin(t, c)
	k.run("create", "deployment", "web", "--image=any/name")
	if got := k.run("get", "nodes,serviceaccounts", "-A", "-o", "name"); got != "" {
		t.Errorf("somebody made %s", got)
	}
	if err := c.StartPart(t.Context(), ControllerManager); err != nil {
		t.Fatal(err)
	}
	k.until("1", "{.status.observedGeneration}", "deployment", "web")
}

func TestServerReportsTheVersionThatIsPinned(t *testing.T) {
	t.Parallel()
	k := admin(t, start(t, Options{}))
	want := pinned("k8s.io/kubernetes")
	for line := range strings.Lines(k.run("version")) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name != "Kustomize Version" && version != want {
			t.Errorf("%s is %s, not %s", name, version, want)
		}
	}
}

//nolint:tparallel // each step begins with what the ones before have left
func TestControllersDoTheirWork(t *testing.T) {
	t.Parallel()
	k := admin(t, start(t, Options{Nodes: 2}))
	k.run("create", "namespace", "work")
	k.run("create", "deployment", "web", "--image=any/name", "--replicas=2")
	k.available("web")

	t.Run("pods spread over the nodes", func(t *testing.T) {
		k := k.in(t)
		nodes := strings.Fields(k.run("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}"))
		if len(nodes) != 2 || nodes[0] == nodes[1] {
			t.Errorf("pods are on %v", nodes)
		}
	})
	t.Run("a disruption budget counts pods", func(t *testing.T) {
		k := k.in(t)
		k.run("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=1")
		k.until("2 1", "{.status.expectedPods} {.status.disruptionsAllowed}", "pdb", "web")
	})
	t.Run("an autoscaler reads the scale", func(t *testing.T) {
		k := k.in(t)
		k.run("autoscale", "deployment", "web", "--min=1", "--max=3")
		k.until("True", `{.status.conditions[?(@.type=="AbleToScale")].status}`, "hpa", "web")
	})
	t.Run("a job completes", func(t *testing.T) {
		k := k.in(t)
		k.run("create", "job", "once", "--image=any/name")
		k.until("1", "{.status.succeeded}", "job", "once")
	})
	t.Run("garbage is collected", func(t *testing.T) {
		k := k.in(t)
		k.run("delete", "deployment", "web", "--cascade=background")
		k.until("", "{.items[*].metadata.name}", "pods", "--selector=app=web")
	})
	t.Run("a namespace goes with what is in it", func(t *testing.T) {
		k := k.in(t)
		k.run("create", "configmap", "c", "--namespace=work")
		k.run("delete", "namespace", "work", "--timeout="+machine.Patience.String())
	})
}

func TestAnotherUserMayDoWhatItsRoleSays(t *testing.T) {
	t.Parallel()
	c := start(t, Options{})
	k, operator := admin(t, c), as(t, c, "operator", "team")

	whoami := "jsonpath={.status.userInfo.username} {.status.userInfo.groups[0]}"
	if got := operator.run("auth", "whoami", "-o", whoami); got != "operator team" {
		t.Errorf("operator is %q", got)
	}
	if got := k.run("auth", "whoami", "-o", whoami); got != "admin system:masters" {
		t.Errorf("admin is %q", got)
	}
	if _, err := operator.try("get", "configmaps"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("without a role: %v", err)
	}
	k.run("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
	k.run("create", "rolebinding", "reader", "--role=reader", "--group=team")
	eventually(t, func() error { _, err := operator.try("get", "configmaps"); return err })
	if _, err := operator.try("create", "configmap", "mine"); err == nil {
		t.Error("may create what it may only read")
	}
}

func TestTwoControlPlanesAtOnceAreApart(t *testing.T) {
	t.Parallel()
	one, two := start(t, Options{}), start(t, Options{})
	admin(t, one).run("create", "configmap", "only-in-one")
	if _, err := admin(t, two).try("get", "configmap", "only-in-one"); err == nil {
		t.Error("an object of one control plane is in the other")
	}
	if one.Dir() == two.Dir() {
		t.Error("they share a folder")
	}
}

func TestClusterOfTheEnvironmentIsUsedInstead(t *testing.T) {
	c := start(t, Options{})
	t.Setenv(KubeconfigEnv, c.Kubeconfig())
	external, err := FromEnv(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if external.Kubeconfig() != c.Kubeconfig() {
		t.Errorf("kubeconfig is %s, not %s", external.Kubeconfig(), c.Kubeconfig())
	}
	who := as(t, external, "operator", "team").run("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	if who != "operator" {
		t.Errorf("user is %q", who)
	}
	for what, err := range map[string]error{
		"stop":  external.StopPart(APIServer),
		"start": external.StartPart(t.Context(), APIServer),
		"pause": external.PausePart(APIServer),
	} {
		expectError(t, what, err, ErrExternal)
	}
	if err := external.Stop(); err != nil {
		t.Error(err)
	}
	admin(t, c).run("get", "namespaces")
}
