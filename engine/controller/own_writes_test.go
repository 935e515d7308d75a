package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/source"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// version returns an object of a resource in a version.
func version(t *testing.T, owner, version string) *unstructured.Unstructured {
	t.Helper()
	return parsed(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: web, resourceVersion: "%s",
		annotations: {operetta.dev/owner: "Shop.example.com default/%s"}}}`, version, owner))
}

// answering is a cluster whose next apply is answered as a test wants.
type answering struct {
	cluster.Cluster
	answer func() (*unstructured.Unstructured, error)
}

// Apply implements cluster.Cluster.
func (a answering) Apply(context.Context, *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return a.answer()
}

func TestTheEchoOfAnOwnWriteReconcilesNobody(t *testing.T) {
	t.Parallel()
	type world struct {
		write  func(during func(), answer string, err error)
		create func(owner, version string)
		update func(before, after *unstructured.Unstructured)
		remove func(owner, version string)
	}
	v := func(owner, n string) *unstructured.Unstructured { return version(t, owner, n) }
	rows := map[string]struct {
		reason string
		act    func(w world)
		want   []string
	}{
		"it comes after the answer": {"the reconcile has seen that version", func(w world) {
			w.write(nil, "2", nil)
			w.update(v("shop", "1"), v("shop", "2"))
		}, nil},
		"it comes before the answer": {"the watch may be faster", func(w world) {
			w.write(func() { w.create("shop", "2") }, "2", nil)
		}, nil},
		"somebody else writes before": {"that is news", func(w world) {
			w.write(func() { w.update(v("shop", "1"), v("shop", "2")); w.update(v("shop", "2"), v("shop", "3")) }, "3", nil)
		}, []string{"default/shop"}},
		"somebody else writes after": {"that is news", func(w world) {
			w.write(nil, "2", nil)
			w.update(v("shop", "1"), v("shop", "2"))
			w.update(v("shop", "2"), v("shop", "3"))
		}, []string{"default/shop"}},
		"the same version once more": {"an informer repeats what it has now and then, so that everything is looked at", func(w world) {
			w.write(nil, "2", nil)
			w.update(v("shop", "2"), v("shop", "2"))
		}, []string{"default/shop"}},
		"the write fails": {"nobody has seen what came of it", func(w world) {
			w.write(func() { w.update(v("shop", "1"), v("shop", "2")) }, "", errors.New("no answer"))
			w.update(v("shop", "2"), v("shop", "3"))
		}, []string{"default/shop", "default/shop"}},
		"it is deleted": {"that is news", func(w world) {
			w.write(nil, "2", nil)
			w.remove("shop", "2")
		}, []string{"default/shop"}},
		"it changes hands": {"whoever had it has to know", func(w world) {
			w.write(nil, "2", nil)
			w.update(v("store", "1"), v("shop", "2"))
		}, []string{"default/shop", "default/store"}},
		"it is another resource's": {"the write was not its own", func(w world) {
			w.write(nil, "2", nil)
			w.update(v("store", "1"), v("store", "2"))
		}, []string{"default/store"}},
		"nobody wrote": {"it is somebody else's doing", func(w world) {
			w.update(v("shop", "1"), v("shop", "2"))
		}, []string{"default/shop"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := &ownWriteFilter{}
			w := &watches{owner: ownerKind{GroupKind: parsed(t, "{apiVersion: example.com/v1, kind: Shop}").GroupVersionKind().GroupKind()}}
			h := own.filterEvents(handler.TypedEnqueueRequestsFromMapFunc(w.requests))
			q := &noted{}
			row.act(world{
				write: func(during func(), answer string, err error) {
					c := filteredCluster{answering{answer: func() (*unstructured.Unstructured, error) {
						if during != nil {
							during()
						}
						return v("shop", answer), err
					}}, own}
					_, _ = c.Apply(t.Context(), v("shop", ""))
				},
				create: func(owner, n string) {
					h.Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: v(owner, n)}, q)
				},
				update: func(before, after *unstructured.Unstructured) {
					h.Update(t.Context(), event.TypedUpdateEvent[client.Object]{ObjectOld: before, ObjectNew: after}, q)
				},
				remove: func(owner, n string) {
					h.Delete(t.Context(), event.TypedDeleteEvent[client.Object]{Object: v(owner, n)}, q)
				},
			})
			slices.Sort(q.added)
			if diff := cmp.Diff(row.want, q.added); diff != "" {
				t.Errorf("%s: woken (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

// noted is a queue that notes what is added to it.
type noted struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]
	added []string
}

// Add implements workqueue.TypedInterface.
func (n *noted) Add(r ctrl.Request) { n.added = append(n.added, r.String()) }

// counted is a store that counts how often a resource is read, which is once a step.
type counted struct {
	cluster.Cluster
	steps int
}

// Get implements cluster.Cluster.
func (c *counted) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	c.steps++
	return c.Cluster.GetCached(ctx, ref)
}

// shop begins the packages of these tests.
const shop = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "example.com"
kind:  "Shop"
versions: v1: spec: {}
cr: spec: versions.v1.spec
live: _
inputs: _
`

func TestAStepThatWroteIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		body   string
		steps  []int // of each reconcile
		again  time.Duration
		want   string // what ConfigMap b says in the end
		refuse memory.Admission
	}{
		"nothing rests on what was written": {
			"one look is enough, and none is needed later",
			`components: b: objects: map: _map & {metadata: name: "b", data: text: "x"}`,
			[]int{2, 1}, 0, "x", nil,
		},
		"the API server rejects it": {
			"the same object would be rejected again",
			`components: a: objects: map: _map & {metadata: name: "a", data: text: "refused"}
components: b: objects: map: _map & {metadata: name: "b", data: text: "x"}`,
			[]int{2, 1}, 5 * time.Minute, "x", func(_, after *unstructured.Unstructured) error {
				if text, _, _ := unstructured.NestedString(after.Object, "data", "text"); text == "refused" {
					return apierrors.NewInvalid(after.GroupVersionKind().GroupKind(), after.GetName(), nil)
				}
				return nil
			},
		},
		"each of ten is named by what was written before": {
			"a chain takes as many steps as it has links, and no pause",
			chainOfInputs(10),
			[]int{11, 1}, 0, "9", nil,
		},
		"what is read is named by what was written": {
			"no event would tell",
			`inputs: region: {apiVersion: "v1", kind: "ConfigMap", name: live.a.map.data.region}
components: a: objects: map: _map & {metadata: name: "a", data: region: "north"}
components: b: objects: map: _map & {metadata: name: "b", data: text: *inputs.region.object.data.name | "none"}`,
			[]int{3, 1}, 0, "far", nil,
		},
		"each look changes it": {
			"it must not hold a worker for ever",
			`components: b: objects: map: _map & {metadata: name: "b", data: text: *"\(live.b.map.data.text)x" | "x"}`,
			[]int{maxContents, maxContents}, firstRetry, "xxxxxx", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := memory.New()
			memory.Serve(parsed(t, "{apiVersion: example.com/v1, kind: Shop}").GroupVersionKind().GroupKind(), cluster.Namespaced)
			put(t, memory, "{apiVersion: example.com/v1, kind: Shop, metadata: {namespace: default, name: shop}}")
			put(t, memory, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: north}, data: {name: far}}")
			for i := range 11 {
				put(t, memory, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: "%d"}, data: {next: "%d"}}`, i, i+1))
			}
			memory.Refuse(row.refuse)
			p := loaded(t, shop+"_map: {apiVersion: \"v1\", kind: \"ConfigMap\"}\n"+row.body)
			own, now := &ownWriteFilter{}, time.Unix(1000, 0)
			store := &counted{Cluster: memory}
			r := &reconciler{own: own, lifecycle: &reconcile.Reconciler{
				Kind: p.GroupVersionKind(), Resources: store, Cluster: filteredCluster{memory, own}, Recorder: unrecorded{},
				Now: func() time.Time { return now },
			}}
			r.use(p)
			var got []int
			var again time.Duration
			for range row.steps {
				store.steps, now = 0, now.Add(time.Minute)
				var err error
				if again, err = r.reconcile(t.Context(), types.NamespacedName{Namespace: "default", Name: "shop"}); err != nil {
					t.Fatal(err)
				}
				got = append(got, store.steps)
			}
			if diff := cmp.Diff(row.steps, got); diff != "" || again != row.again {
				t.Errorf("%s: again after %s; steps (-want +got):\n%s", row.reason, again, diff)
			}
			b, err := memory.GetLive(t.Context(), cluster.RefOf(parsed(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: b}}")))
			if text, _, _ := unstructured.NestedString(b.Object, "data", "text"); err != nil || text != row.want {
				t.Errorf("%s: it says %q (error %v), want %q", row.reason, text, err, row.want)
			}
		})
	}
}

// chainOfInputs returns components each of which reads an object that is named by the
// live object of the one before. The last is b.
func chainOfInputs(links int) string {
	var out strings.Builder
	for i := range links {
		name, text := fmt.Sprint("l", i), `"0"`
		if i == links-1 {
			name = "b"
		}
		if i > 0 {
			fmt.Fprintf(&out, "inputs: i%d: {apiVersion: \"v1\", kind: \"ConfigMap\", name: live.l%d.map.data.text}\n", i, i-1)
			text = fmt.Sprintf("*inputs.i%d.object.data.next | \"none\"", i)
		}
		fmt.Fprintf(&out, "components: %s: objects: map: _map & {metadata: name: %q, data: text: %s}\n", name, name, text)
	}
	return out.String()
}

func put(t *testing.T, m *memory.Cluster, text string) {
	t.Helper()
	if _, err := m.Put("person", parsed(t, text)); err != nil {
		t.Fatal(err)
	}
}

func loaded(t *testing.T, text string) *program.Program {
	t.Helper()
	s, err := source.New(fstest.MapFS{"shop/shop.cue": &fstest.MapFile{Data: []byte(text)}}, "shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// unrecorded records no events.
type unrecorded struct{}

// Record implements reconcile.Recorder.
func (unrecorded) Record(*unstructured.Unstructured, rollout.Event) {}
