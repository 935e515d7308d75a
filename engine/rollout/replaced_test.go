package rollout_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/rollout"
)

// replacing is a cluster in which an object is deleted and created anew between the
// read that decides about its deletion and the deletion itself, once.
type replacing struct {
	cluster.Cluster

	w    *world
	name string
	by   func(*unstructured.Unstructured)
	done bool
}

// Delete implements cluster.Cluster.
func (r *replacing) Delete(ctx context.Context, ref cluster.Ref, uid types.UID) error {
	if ref.Name == r.name && !r.done {
		r.done = true
		old := r.w.object(ref.Kind, ref.Name)
		r.w.delete(old)
		if r.by != nil {
			r.by(old)
			r.w.put("somebody", old)
		}
	}
	return r.Cluster.Delete(ctx, ref, uid)
}

// eventsAbout returns the reasons of the events that name an object.
func eventsAbout(r rollout.Result, object string) []string {
	var out []string
	for _, e := range r.Events {
		if strings.Contains(e.Message, object) {
			out = append(out, e.Reason)
		}
	}
	return out
}

func TestB3AnObjectThatWasReplacedIsNotDeleted(t *testing.T) {
	t.Parallel()
	unmarked := func(u *unstructured.Unstructured) {
		u.SetOwnerReferences(nil)
		u.SetLabels(nil)
		u.SetAnnotations(nil)
	}
	rows := map[string]struct {
		reason string
		by     func(*unstructured.Unstructured)
		kept   bool
		events []string
	}{
		"by somebody's": {
			reason: "it is not what was to be deleted, and a person is told",
			by:     unmarked, kept: true, events: []string{"Kept"},
		},
		"by that of another resource": {
			reason: "E6",
			by: func(u *unstructured.Unstructured) {
				unmarked(u)
				u.SetAnnotations(map[string]string{ownership.OwnerAnnotation: "Shop.example.com " + u.GetNamespace() + "/another"})
			},
			kept: true, events: []string{"Kept"},
		},
		"by the resource's own": {
			reason: "a restored backup or another process of the operator: it is not to be forgotten",
			by:     func(*unstructured.Unstructured) {}, events: []string{"Deleted"},
		},
		"by nothing": {
			reason: "it is gone, whoever did it", events: []string{"Deleted"},
		},
	}
	for name, row := range rows {
		for how, remove := range map[string]func(w *world) (rollout.Result, error){
			"when it is pruned": func(w *world) (rollout.Result, error) {
				w.spec["on"] = false
				return w.run()
			},
			"when it is torn down": (*world).teardown,
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, `
components: a: objects: o: `+configMap("a", "")+`
components: b: {when: cr.spec.on, objects: o: `+configMap("b", "")+`}
`)
				w.mustRun()
				w.cluster = &replacing{Cluster: w.site, w: w, name: "b", by: row.by}
				result, err := remove(w)
				got := eventsAbout(result, "ConfigMap "+w.owner.Namespace+"/b")
				if err != nil { // it is tried again
					if _, _, known := w.inventory.Find(w.ref("b"), w.owner.Namespace); !known || len(got) > 0 {
						t.Errorf("%s: in the inventory: %v, events %v while %v", row.reason, known, got, err)
					}
					result, err = remove(w)
					got = eventsAbout(result, "ConfigMap "+w.owner.Namespace+"/b")
				}
				if _, _, known := w.inventory.Find(w.ref("b"), w.owner.Namespace); known || err != nil {
					t.Errorf("%s: in the inventory: %v, error %v", row.reason, known, err)
				}
				if kept := w.object("ConfigMap", "b") != nil; kept != row.kept || !slices.Equal(got, row.events) {
					t.Errorf("%s: it was kept: %v, events %v, want %v and %v", row.reason, kept, got, row.kept, row.events)
				}
			})
		}
	}
}

// ref identifies a ConfigMap.
func (w *world) ref(name string) cluster.Ref {
	return cluster.RefOf(object(kinds["ConfigMap"], w.owner.Namespace, name))
}
