package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// restricted is a cluster whose API server lets the operator read no objects of some kinds.
type restricted struct {
	cluster.Cluster

	kinds []string
	// asked counts the live reads that were refused.
	asked atomic.Int64
}

// GetCached implements cluster.Cluster.
func (r *restricted) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if slices.Contains(r.kinds, ref.Kind) {
		return nil, &cluster.KindUnreadableError{Kind: ref.GroupVersionKind, Cause: r.refusal(ref)}
	}
	return r.Cluster.GetCached(ctx, ref)
}

// GetLive implements cluster.Cluster.
func (r *restricted) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if slices.Contains(r.kinds, ref.Kind) {
		r.asked.Add(1)
		return nil, cluster.WrapError(ref, "reading", r.refusal(ref))
	}
	return r.Cluster.GetLive(ctx, ref)
}

func (r *restricted) refusal(ref cluster.Ref) error {
	return apierrors.NewForbidden(cluster.ResourceOf(ref), ref.Name, errors.New("the operator may not read it"))
}

// TestAKindThatThePackageCannotRenderHoldsNothing: an inventory names objects of kinds that the operator may not read. Only for
// a kind that the package may render does an object that seems to be absent change what is rendered.
func TestAKindThatThePackageCannotRenderHoldsNothing(t *testing.T) {
	t.Parallel()
	const text = `components: text: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "text", data: size: "\(cr.spec.size)"}` + "\n"
	secret := func(component, object string) ownership.Group {
		return ownership.Group{Component: component, Objects: []ownership.Entry{{Object: object, APIVersion: "v1", Kind: "Secret", Name: "old", UIDPrefix: "01234567"}}}
	}
	for name, row := range map[string]struct {
		reason, body string
		forged       ownership.Group
		// held says that nothing is written.
		held bool
	}{
		"of a component that is none":      {"no package that renders Secrets is here any more, or there never was one", text, secret("old", "o"), false},
		"of a component that there is":     {"its own object is still seen", text, secret("text", "o"), false},
		"of another object of a component": {"the component does not render it", text, secret("text", "more"), false},
		"that a branch renders": {"a package may look at what it renders", text + `
if cr.spec.size > 7 {components: more: objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "more"}}`, secret("old", "o"), true},
		"that keeps its component": {"it would seem to be gone, and would be deleted for that", text + `
components: old: {
	when: (*live.old.o.metadata.name | "") == "old"
	objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "old"}
}`, secret("old", "o"), true},
		"of a kind that nobody knows": {"the package may render any kind", text + `
components: more: objects: o: {apiVersion: "v1", kind: *cr.spec.name | "ConfigMap", metadata: name: "more"}`, secret("old", "o"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, row.body)
			w.mustRun()
			w.mustRun()
			w.wrote()
			w.spec["size"] = int64(2)
			w.inventory = append(slices.Clone(w.inventory), row.forged)
			w.cluster = &restricted{Cluster: w.site, kinds: []string{"Secret"}}
			result, err := w.run()
			if err == nil {
				t.Errorf("%s: nobody tries it again", row.reason)
			}
			if row.held {
				w.expectWrites(row.reason)
				if got := result.Completion.Fault.Reason; got != status.ReasonKindUnreadable {
					t.Errorf("%s: the fault is %q", row.reason, got)
				}
				return
			}
			w.expectWrites(row.reason, "update ConfigMap text")
			if got := result.Completion.Pruning; !result.Completion.Refused || !strings.Contains(got, "Secret "+w.owner.Namespace+"/old") || !strings.Contains(got, `cannot get resource "secrets"`) {
				t.Errorf("%s: it is not said what cannot be deleted: %q", row.reason, got)
			}
			if result.Completion.Ready() || !strings.Contains(fmt.Sprint(result.Inventory), "old") {
				t.Errorf("%s: it is ready, or what may exist is forgotten: %v", row.reason, result.Inventory)
			}
		})
	}
}

// TestWhatAnEarlierVersionHasRenderedIsPrunedOnceItMayBeRead: the rights of the version that rendered it went first.
func TestWhatAnEarlierVersionHasRenderedIsPrunedOnceItMayBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, leaning)
	w.mustRun()
	w.mustRun()
	w.load(`components: alone: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "alone", data: size: "\(cr.spec.size)"}`)
	w.spec["size"] = int64(2)
	w.cluster = &restricted{Cluster: w.site, kinds: []string{"Secret", "ServiceAccount"}}
	w.wrote()
	result, err := w.run()
	if err == nil || !result.Completion.Refused {
		t.Errorf("it is not said what cannot be deleted: %+v (%v)", result.Completion, err)
	}
	if w.object("Secret", "db") == nil || w.object("ConfigMap", "alone") == nil || w.object("ConfigMap", "text") != nil {
		t.Error("more or less is deleted than what may be read and is not rendered")
	}
	w.cluster = w.site
	w.mustRun()
	if result := w.mustRun(); !result.Completion.Ready() || w.object("Secret", "db") != nil || result.Inventory.Len() != 1 {
		t.Errorf("what may be read again is not deleted: %v", result.Inventory)
	}
}

// TestAnEntryThatHidesInANamespaceIsOutOfReach: a status says of a Namespace that it is in the namespace of the resource.
func TestAnEntryThatHidesInANamespaceIsOutOfReach(t *testing.T) {
	t.Parallel()
	for how, by := range map[string]func(w *world) (rollout.Result, error){
		"pruned":    (*world).run,
		"torn down": func(w *world) (rollout.Result, error) { w.owner.Reach = w.reach(); return w.teardown() },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			r := &restricted{Cluster: w.cluster, kinds: []string{"Namespace"}}
			w.cluster = r
			w.inventory = append(slices.Clone(w.inventory), ownership.Group{Component: "old", Objects: []ownership.Entry{{Object: "o", APIVersion: "v1", Kind: "Namespace", Name: "hidden", UIDPrefix: "01234567"}}})
			result, err := by(w)
			if err != nil {
				t.Fatal(err)
			}
			if got := eventsAbout(result, "hidden"); !slices.Equal(got, []string{"OutOfReach"}) || r.asked.Load() > 0 {
				t.Errorf("it is read %d times, and the events are %v", r.asked.Load(), got)
			}
			if slices.ContainsFunc(result.Inventory, func(g ownership.Group) bool { return g.Component == "old" }) {
				t.Errorf("it stays in the inventory: %v", result.Inventory)
			}
		})
	}
}

// TestReadsThatAreRefusedAreFew: a status names thousands of objects of a kind that the operator may not read.
func TestReadsThatAreRefusedAreFew(t *testing.T) {
	t.Parallel()
	const few = 60 // of the rounds of one reconcile together
	for name, row := range map[string]struct {
		reason  string
		entries int
		// alone says that the entries are in place of the resource's own.
		alone bool
		// far says that each is in a namespace of its own.
		far  bool
		by   func(*world) (rollout.Result, error)
		want func(rollout.Result) bool
	}{
		"that are pruned":             {"they have room", 500, false, false, (*world).run, func(r rollout.Result) bool { return r.Completion.Refused }},
		"that leave no room":          {"the status cannot hold more", 4000, true, false, (*world).run, func(r rollout.Result) bool { return r.Completion.Fault.Reason == status.ReasonStatusTooLarge }},
		"that are in many namespaces": {"each of them is a place of its own", 500, false, true, (*world).run, func(r rollout.Result) bool { return r.Completion.Refused }},
		"that are to be torn down": {"they may exist", 500, false, false, (*world).teardown, func(r rollout.Result) bool {
			return slices.ContainsFunc(r.Completion.Components, func(c status.Component) bool { return c.Reason == status.ReasonDeleteFailed })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			w.load(pair + `reach: Secret: namespaces: "*": true`)
			r := &restricted{Cluster: w.cluster, kinds: []string{"Secret"}}
			w.cluster = r
			forged := forgedEntries(row.entries, "old")
			for i := range forged.Objects {
				forged.Objects[i].Kind = "Secret"
				if row.far {
					forged.Objects[i].Namespace = fmt.Sprint("far-", i)
				}
			}
			if row.alone {
				w.inventory = nil
			}
			w.inventory = append(slices.Clone(w.inventory), forged)
			w.spec["size"] = int64(2)
			result, _ := row.by(w)
			if !row.want(result) {
				t.Errorf("%s: it is %+v", row.reason, result.Completion)
			}
			if n := r.asked.Load(); n == 0 || n > few {
				t.Errorf("%s: %d objects are read", row.reason, n)
			}
			if n := len(result.Completion.Pruning); n > 10_000 {
				t.Errorf("%s: it says so in %d bytes", row.reason, n)
			}
		})
	}
}
