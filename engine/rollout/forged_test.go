package rollout_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
)

// victims are what a forged inventory names: objects of others, with their UIDs.
func victims(w *world) ownership.Inventory {
	there := w.owner.Namespace + "-there"
	var out []ownership.Entry
	for _, v := range []struct {
		kind      schema.GroupVersionKind
		namespace string
	}{
		{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, ""},
		{schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, ""},
		{kinds["Secret"], there},
		{kinds["ConfigMap"], there},
		{kinds["ConfigMap"], w.owner.Namespace},
	} {
		u := object(v.kind, v.namespace, "victim-"+w.owner.Namespace)
		if v.kind.Kind == "Namespace" {
			u.SetName(there)
		}
		u = w.site.Put("tenant", u)
		e := ownership.Entry{Object: "o" + strings.ToLower(v.kind.Kind) + v.namespace, APIVersion: v.kind.GroupVersion().String(), Kind: v.kind.Kind, Name: u.GetName(), UIDPrefix: string(u.GetUID())[:min(8, len(u.GetUID()))]}
		e.Namespace, e.ClusterScoped = v.namespace, v.namespace == ""
		if v.namespace == w.owner.Namespace {
			e.Namespace = ""
		}
		out = append(out, e)
	}
	w.wrote()
	return ownership.Inventory{{Component: "old", Objects: out}}
}

// TestAForgedInventoryDeletesNothing: who may write a status names objects of others in it,
// with what may be read of their UIDs.
func TestAForgedInventoryDeletesNothing(t *testing.T) {
	t.Parallel()
	for how, remove := range map[string]struct {
		by     func(w *world) (rollout.Result, error)
		reason string
	}{
		"when it is pruned":                      {(*world).run, "OutOfReach"},
		"when it is torn down":                   {func(w *world) (rollout.Result, error) { w.owner.Reach = w.reach(); return w.teardown() }, "OutOfReach"},
		"when it is torn down without a package": {(*world).teardown, "OutOfReach"},
		"when the package reaches there":         {func(w *world) (rollout.Result, error) { w.load(pair + w.reachingThere()); return w.run() }, "Kept"},
		"when that is torn down": {func(w *world) (rollout.Result, error) {
			w.load(pair + w.reachingThere())
			w.owner.Reach = w.reach()
			return w.teardown()
		}, "Kept"},
		"when its kind is said to have none":       {func(w *world) (rollout.Result, error) { w.pretend(); return w.run() }, ""},
		"when that is torn down without a package": {func(w *world) (rollout.Result, error) { w.pretend(); return w.teardown() }, ""},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			forged := victims(w)
			w.inventory = append(slices.Clone(w.inventory), forged...)
			result, err := remove.by(w)
			if err != nil {
				t.Fatal(err)
			}
			for _, wrote := range w.wrote() {
				// On a cluster that tests share, what they make without a namespace is seen by all, and late.
				if strings.HasPrefix(wrote, "create ") || !strings.Contains(wrote, w.owner.Namespace) {
					continue
				}
				if strings.Contains(wrote, "victim") || strings.Contains(wrote, "Namespace") {
					t.Errorf("%s", wrote)
				}
			}
			for _, e := range forged[0].Objects {
				ref := e.Ref(w.owner.Namespace)
				if left, err := w.site.GetLive(t.Context(), scopeless(ref)); left == nil || left.GetDeletionTimestamp() != nil {
					t.Errorf("%s is gone: %v", ref, err)
				}
				want := remove.reason
				if ref.Namespace == w.owner.Namespace && want != "" {
					want = "Kept"
				}
				if got := eventsAbout(result, ref.String()); want != "" && !slices.Equal(got, []string{want}) {
					t.Errorf("the events about %s are %v, want %s", ref, got, want)
				}
			}
			if slices.ContainsFunc(result.Inventory, func(g ownership.Group) bool { return g.Component == "old" }) {
				t.Errorf("what is not the resource's stays in the inventory: %v", result.Inventory)
			}
		})
	}
}

// reach returns where the package says that objects may be.
func (w *world) reach() *program.Reach {
	reach := w.program.Reach()
	return &reach
}

// reachingThere is what a package says that may own all of the victims.
func (w *world) reachingThere() string {
	there := fmt.Sprintf("namespaces: %q: true", w.owner.Namespace+"-there")
	return `reach: {Namespace: {}, "ClusterRole.rbac.authorization.k8s.io": {}, Secret: ` + there + ", ConfigMap: " + there + "}\n"
}

// pretend makes a forged inventory say of objects without a namespace that they are in the
// one of the resource: an API server finds them all the same.
func (w *world) pretend() {
	for i := range w.inventory {
		for j := range w.inventory[i].Objects {
			w.inventory[i].Objects[j].ClusterScoped = false
		}
	}
	w.cluster = pathless{w.cluster}
}

// pathless finds what is in no namespace also when a namespace is asked for, as the clients
// of an API server do.
type pathless struct{ cluster.Cluster }

func scopeless(ref cluster.Ref) cluster.Ref {
	if ref.Kind == "Namespace" || ref.Kind == "ClusterRole" {
		ref.Namespace = ""
	}
	return ref
}

// GetCached implements cluster.Cluster.
func (c pathless) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	return c.Cluster.GetCached(ctx, scopeless(ref))
}

// GetLive implements cluster.Cluster.
func (c pathless) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	return c.Cluster.GetLive(ctx, scopeless(ref))
}

// TestAPackageSeesNothingThatAForgedInventoryNames: it could put into its status what its
// tenant may not read.
func TestAPackageSeesNothingThatAForgedInventoryNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: a: objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: cr.spec.name}
status: stolen: *live.a.o.data.password | "nothing"
`)
	w.spec["name"] = "mine"
	secret := object(kinds["Secret"], w.owner.Namespace, "theirs")
	secret.Object["data"] = map[string]any{"password": "c2VjcmV0"}
	secret = w.site.Put("tenant", secret)
	w.inventory = ownership.Inventory{{Component: "a", Objects: []ownership.Entry{{Object: "o", APIVersion: "v1", Kind: "Secret", Name: "theirs", UIDPrefix: string(secret.GetUID())[:min(8, len(secret.GetUID()))]}}}}
	w.wrote()
	result := w.mustRun()
	if got := result.Completion.Own["stolen"]; got != "nothing" {
		t.Errorf("the status says %v", got)
	}
	w.expectWrites("only its own is made", "create Secret mine")
}

// TestAJobThatIsSaidToHaveEndedIsNeverMadeAndNothingElse: that is all that a forged ending
// does, to the resource that was forged.
func TestAJobThatIsSaidToHaveEndedIsNeverMadeAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: a: objects: {
	job: _job & {apiVersion: "batch/v1", kind: "Job", metadata: name: "job"}
	note: `+configMap("note", "")+`
}`)
	w.mustRun()
	w.expectWrites("all is made", "create Job job", "create ConfigMap note")
	for _, name := range []string{"job", "note"} {
		kind := map[string]string{"job": "Job", "note": "ConfigMap"}[name]
		w.delete(w.object(kind, name))
		for i := range w.inventory {
			for j, e := range w.inventory[i].Objects {
				if e.Name == name {
					e.Content, e.Ended, e.Last = cmp.Or(e.Content, "0123"), ownership.Succeeded, `{"succeeded":1}`
					w.inventory[i].Objects[j] = e
				}
			}
		}
	}
	w.mustRun()
	w.expectWrites("what does not end is made whatever is said of it", "create ConfigMap note")
}
