package reconcile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/status"
)

const ordered = `
reach: {"ClusterRole.rbac.authorization.k8s.io": {}, ConfigMap: namespaces: elsewhere: true}
components: base: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.spec.name)-base", data: text: "base"}
components: top: {dependsOn: base: {}, objects: {
	o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.spec.name)-top"}
	role: {apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: name: "\(cr.spec.name)-role", rules: [_rule]}
	far: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: "\(cr.spec.name)-far", namespace: "elsewhere"}, data: text: "far"}
	kept: {apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: name: "\(cr.spec.name)-kept", rules: [_rule]}
}, policy: kept: delete: "orphan"}
_rule: {apiGroups: [""], resources: ["pods"], verbs: ["get"]}
`

// names returns the names of all objects but the resource.
func (b *bench) names() []string {
	var out []string
	for _, u := range b.memory.Objects() {
		if u.GetKind() != shopKind.Kind {
			out = append(out, u.GetName())
		}
	}
	return out
}

// deletions returns the names of what was deleted, in order.
func (b *bench) deletions() []string {
	var out []string
	for _, c := range b.memory.Changes() {
		if c.Operation == "delete" {
			out = append(out, c.Ref.Name)
		}
	}
	return out
}

func TestAWipedStatusIsRebuiltFromTheObjects(t *testing.T) {
	t.Parallel()
	t.Run("when the resource is deleted", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, ordered)
		b.rest()
		b.wipe()
		act(t, b.memory, deleted)
		b.rest()
		if diff := cmp.Diff([]string{"shop-top", "shop-role", "shop-far", "shop-base", "my"}, b.deletions(), unordered); diff != "" {
			t.Errorf("everything goes but what is to be left behind (-want +got):\n%s", diff)
		}
		if d := b.deletions(); len(d) < 2 || d[len(d)-2] != "shop-base" {
			t.Errorf("G1: the order is lost with the status: %v", d)
		}
	})
	t.Run("when everything gets another name", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, ordered)
		b.rest()
		b.wipe()
		act(t, b.memory, map[string]any{"name": "store"})
		b.rest()
		if diff := cmp.Diff([]string{"store-base", "store-top", "store-role", "store-far", "store-kept", "shop-kept"}, b.names(), unordered); diff != "" {
			t.Errorf("A3: the old objects are forgotten (-want +got):\n%s", diff)
		}
		b.expect("all is well again", "True Ready")
	})
	t.Run("when nothing needs a finalizer", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, `components: base: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.spec.name}`)
		b.rest()
		b.wipe()
		act(t, b.memory, map[string]any{"name": "store"})
		b.rest()
		if diff := cmp.Diff([]string{"store"}, b.names()); diff != "" {
			t.Errorf("A3: the old object is forgotten (-want +got):\n%s", diff)
		}
	})
	t.Run("when nothing else happens", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, ordered)
		b.rest()
		before := b.status()
		n := len(b.memory.Changes())
		b.wipe()
		b.rest()
		for _, c := range b.memory.Changes()[n:] {
			if c.Ref.Kind != shopKind.Kind {
				t.Errorf("nothing is to be done about %s", c)
			}
		}
		if diff := cmp.Diff(inventory(t, before), inventory(t, b.status()), byName); diff != "" {
			t.Errorf("the inventory is another (-before +after):\n%s", diff)
		}
	})
}

// byName compares the objects of a component as a set.
var byName = cmpopts.SortSlices(func(a, b ownership.Entry) bool { return a.Name < b.Name })

// inventory reads the inventory in a status.
func inventory(t *testing.T, s map[string]any) []ownership.Group {
	t.Helper()
	list, _ := s["inventory"].([]any)
	out, err := ownership.Decode(list)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDeletionWithCascadeOrphanLeavesEverythingBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t, ordered)
	b.rest()
	cr := b.find("Shop", shopKey.Name)
	cr.SetFinalizers(append(cr.GetFinalizers(), "orphan"))
	if _, err := b.memory.Put("kubectl", cr); err != nil {
		t.Fatal(err)
	}
	act(t, b.memory, deleted)
	if _, err := b.step(); err != nil {
		t.Fatal(err)
	}
	if d := b.deletions(); len(d) != 0 {
		t.Errorf("G5: deleted %v", d)
	}
	if got := b.find("Shop", shopKey.Name).GetFinalizers(); len(got) != 1 || got[0] != "orphan" {
		t.Errorf("G5: the finalizers are %v, want the garbage collector's alone", got)
	}
}

func TestTheVersionIsReconciledOnceEverythingIsVerified(t *testing.T) {
	t.Parallel()
	b := newBench(t, `components: web: objects: deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web", spec: replicas: cr.spec.size}
hooks: afterDeploy: job: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "migrate"}
`)
	reconciled := func() any { return b.status()["versions"].(map[string]any)["reconciled"] }
	phases := map[string]bool{}
	b.reconciler.Resources = phaseStore{b.reconciler.Resources, phases}
	b.rest()
	if b.status()["versions"].(map[string]any)["desired"] != "v1" || reconciled() != nil {
		t.Errorf("versions %v while it rolls out", b.status()["versions"])
	}
	b.heal("web", 1)
	b.rest()
	if reconciled() != nil {
		t.Error("it is reconciled before its hook has ended")
	}
	completeJobs(t, b.memory)
	b.rest()
	if reconciled() != "v1" {
		t.Errorf("versions %v, want it reconciled", b.status()["versions"])
	}
	b.heal("web", 0)
	b.rest()
	if reconciled() != "v1" {
		t.Error("what was reconciled once stays so")
	}
	b.heal("web", 1)
	b.rest()
	act(t, b.memory, map[string]any{"size": int64(1), "name": "other"})
	b.rest()
	act(t, b.memory, deleted)
	for _, want := range []status.Phase{status.PhaseCreated, status.PhaseWaiting, status.PhaseReady} {
		if !phases[string(want)] {
			t.Errorf("the phase %s never came: %v", want, phases)
		}
	}
}

func TestATeardownSaysWhatIsHeldAndNeedsNoPackage(t *testing.T) {
	t.Parallel()
	b := newBench(t, ordered)
	b.rest()
	held := b.find("ConfigMap", "shop-top")
	held.SetFinalizers([]string{"example.com/held"})
	if _, err := b.memory.Put("somebody", held); err != nil {
		t.Fatal(err)
	}
	b.load(`reach: {"ClusterRole.rbac.authorization.k8s.io": {}, ConfigMap: namespaces: elsewhere: true}
components: another: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "another"}
inputs: gone: {apiVersion: "v1", kind: "Secret", name: "gone"}`)
	act(t, b.memory, deleted)
	b.rest()
	if got := b.status()["phase"]; got != string(status.PhaseDeleting) {
		t.Errorf("phase %v", got)
	}
	b.expect("G2: it states what blocks it", "False Deleting", "held by the finalizer example.com/held")
	if b.find("ConfigMap", "shop-base") == nil || b.find("ConfigMap", "another") != nil {
		t.Error("G1: the dependency is gone before its dependent, or the new package was rolled out")
	}
	held = b.find("ConfigMap", "shop-top")
	held.SetFinalizers(nil)
	if _, err := b.memory.Put("somebody", held); err != nil {
		t.Fatal(err)
	}
	b.rest()
	if got := strings.Join(b.names(), " "); got != "shop-kept" {
		t.Errorf("left behind: %s", got)
	}
}
