package eval

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/status"
)

// compareDeletes compares what a reconcile deletes, and what it leaves, with what render says once everything is
// written: what it renders must not be deleted, what others own must not be deleted either, and of what the resource
// owns nothing may be left that no component renders any more.
func (m moment) compareDeletes(t *testing.T, w *dryrun.World, step dryrun.Step) {
	t.Helper()
	resource := w.Get(m.ref)
	written := slices.DeleteFunc(slices.Clone(step.Changes), isDeletion)
	rendered := m.render(t, after(m.state, written))
	wanted := wantedBy(rendered, resource.GetNamespace(), w)
	for _, c := range step.Changes {
		if !isDeletion(c) {
			continue
		}
		o, ok := wanted[c.Ref.Identity()]
		if !ok {
			m.seen.met(aPrune)
		}
		if ok && o.Apply != program.RecreateOnImmutable {
			t.Errorf("%s: %s is deleted, and render has it", m.what, c.Ref)
		}
		if !isOwned(c.Before, resource) {
			t.Errorf("%s: %s is deleted, and belongs to somebody else", m.what, c.Ref)
		}
	}
	if step.Err != nil || isStopped(step.Status) {
		return
	}
	for _, entry := range inventoryOf(t, resource) {
		u := w.Get(entry.ref)
		if _, ok := wanted[entry.ref.Identity()]; !ok && u != nil && isOwned(u, resource) && entry.mayGo(step.Status) && !entry.Orphan {
			t.Errorf("%s: %s of component %s is left, and render does not have it", m.what, entry.ref, entry.component)
		}
	}
}

// isStopped reports whether a status says that the rollout has stopped, or that something is being deleted: what is left
// then is left for a reason.
func isStopped(s map[string]any) bool {
	c := status.Condition(s, status.ConditionReady)
	if c == nil || c.Status == "True" {
		return false
	}
	return len(componentsOf(s)) == 0 || slices.Contains([]string{
		string(status.ReasonPruneRefused), string(status.ReasonPruning), string(status.ReasonInvalidSpec), string(status.ReasonInvalidPackage), string(status.ReasonInvalidConfig),
	}, c.Reason)
}

// wantedBy returns the objects that components and hooks should have, with their policies. An excluded component should have
// none, unless only the kind of its objects is missing.
func wantedBy(rendered render.Output, namespace string, w *dryrun.World) map[cluster.Ref]program.Policy {
	out := map[cluster.Ref]program.Policy{}
	for _, c := range rendered.Components {
		if c.State == status.Excluded && c.Reason != status.ReasonKindNotServed {
			continue
		}
		for _, o := range c.Source.Objects {
			if scope, err := w.Scope(o.Identity.GroupVersionKind); err == nil && o.Identity.Known() {
				out[ownership.RefOf(o, namespace, scope).Identity()] = o.Policy
			}
		}
		for _, o := range c.Objects { // the objects of hooks have other names than their source
			out[o.Ref().Identity()] = o.Policy
		}
	}
	return out
}

// An entry is an object in the inventory of a resource.
type entry struct {
	ownership.Entry

	component string
	ref       cluster.Ref
}

// inventoryOf returns the inventory of a resource.
func inventoryOf(t *testing.T, resource *unstructured.Unstructured) []entry {
	t.Helper()
	groups, _, _ := unstructured.NestedSlice(resource.Object, "status", "inventory")
	inventory, err := ownership.Decode(groups)
	if err != nil {
		t.Fatal(err)
	}
	var out []entry
	for _, g := range inventory {
		for _, e := range g.Objects {
			out = append(out, entry{e, g.Component, e.Ref(resource.GetNamespace())})
		}
	}
	return out
}

// mayGo reports whether a status says of the component of an entry that it has been applied, or that it should not
// exist; before that, it keeps what it has. A hook that the status does not list may have its name from values that are not there
// yet, so it keeps what it has until everything is ready.
func (e entry) mayGo(s map[string]any) bool {
	if c := status.Condition(s, status.ConditionReady); strings.HasPrefix(e.component, "hooks.") {
		return c != nil && c.Status == "True"
	}
	components, _ := s["components"].([]any)
	for _, c := range components {
		c, _ := c.(map[string]any)
		if text(c["name"]) != e.component {
			continue
		}
		switch status.State(text(c["state"])) {
		case status.Verified, status.Applied:
			return true
		case status.Excluded:
			return text(c["reason"]) != string(status.ReasonKindNotServed)
		default:
			return false
		}
	}
	return true
}

// compareServer compares what a reconcile writes and deletes with what the dry run on a server says, up to where they
// have to differ: see sharedChanges.
func (m moment) compareServer(t *testing.T, step dryrun.Step) {
	t.Helper()
	w := worldOf(t, m.program, m.state)
	s := dryrun.NewServer(dryrun.ServerOptions{
		Cluster: w.Cluster.DryRun(), ConfigMap: configMap,
		Subsystem: func(_ context.Context, kind schema.GroupKind) (bool, error) { return w.Serves(kind), nil },
	}, m.program)
	before := len(w.Cluster.Changes())
	dry := s.Reconcile(t.Context(), w.Get(m.ref))
	if n := len(w.Cluster.Changes()); n != before {
		t.Errorf("%s: the dry run on a server has written %v", m.what, w.Cluster.Changes()[before:])
	}
	want, got := writes(step.Changes), writes(dry.Changes)
	if n := sharedChanges(step.Changes); n < len(step.Changes) {
		m.seen.met(aServerCut)
		want = writes(step.Changes[:n])
		got = got[:min(len(want), len(got))]
	}
	if len(want) > 0 {
		m.seen.met(aServerChange)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the dry run on a server would do something else than the reconcile (-reconcile +dry run):\n%s", m.what, diff)
	}
	if errorText(step.Err) != errorText(dry.Err) {
		t.Errorf("%s: the reconcile ends with the error %v, and the dry run on a server with %v", m.what, step.Err, dry.Err)
	}
}

// sharedChanges returns how many of the changes of a reconcile are made by a dry run on a server as well. Nothing waits for
// finalizers there, so what follows the deletion of an object that has some may differ, and an object that would be created
// has another UID, so what contains that differs. Of the writes that writes merges, it makes all or none.
func sharedChanges(changes []cluster.ObjectChange) int {
	n := comparableChanges(changes)
	for n > 0 && !isDeletion(changes[n-1]) && isFollowed(changes, n-1) {
		n--
	}
	return n
}

// comparableChanges is sharedChanges, which may end between two writes that are merged.
func comparableChanges(changes []cluster.ObjectChange) int {
	created := map[string]bool{}
	for i, c := range changes {
		for uid := range created {
			if c.Object != nil && strings.Contains(content(c.Object), uid) || strings.Contains(c.Ref.Name, uid) {
				return i
			}
		}
		switch {
		case isDeletion(c) && c.Operation != cluster.Deleted:
			return i + 1
		case c.Operation == cluster.Created:
			created[string(c.Object.GetUID())] = true
		}
	}
	return len(changes)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// writes returns changes as text, with what the objects become apart from what only a server writes. Writes that follow
// each other and concern the same object are one.
func writes(changes []cluster.ObjectChange) []string {
	var out []string
	op := cluster.Operation("")
	for i, c := range changes {
		if op == "" {
			op = c.Operation
		}
		switch {
		case isDeletion(c):
			out = append(out, "delete "+c.Ref.String())
		case isFollowed(changes, i):
			continue // with the operation of the first
		case c.Operation == cluster.Updated && content(c.Before) == content(c.Object):
		default:
			out = append(out, string(op)+" "+c.Ref.String()+" "+content(c.Object))
		}
		op = ""
	}
	return out
}

// content returns an object without what only a server writes.
func content(u *unstructured.Unstructured) string {
	fields := maps.Clone(u.Object)
	delete(fields, "status")
	metadata, _ := fields["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, name := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		delete(metadata, name)
	}
	fields["metadata"] = metadata
	out, err := json.Marshal(fields)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
