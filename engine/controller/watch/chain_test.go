package watch

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/source"
)

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

// The watch event of an object that a reconcile wrote reconciles its resource again. So a write
// unblocks what reads the written object, although no edge says so.
func TestAReconcileThatWroteIsFollowedByAnotherUntilNothingIsWritten(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		body   string
		most   int // reconciles until no event is left, of at most 20
		again  time.Duration
		want   string // what ConfigMap b says in the end
		refuse memory.Admission
	}{
		"nothing rests on what was written": {
			"one more is enough, and none is needed later",
			`components: b: objects: map: _map & {metadata: name: "b", data: text: "x"}`,
			2, 0, "x", nil,
		},
		"the API server rejects it": {
			"the same object would be rejected again",
			`components: a: objects: map: _map & {metadata: name: "a", data: text: "refused"}
components: b: objects: map: _map & {metadata: name: "b", data: text: "x"}`,
			2, 5 * time.Minute, "x", func(_, after *unstructured.Unstructured) error {
				if text, _, _ := unstructured.NestedString(after.Object, "data", "text"); text == "refused" {
					return apierrors.NewInvalid(after.GroupVersionKind().GroupKind(), after.GetName(), nil)
				}
				return nil
			},
		},
		"each of ten is named by what was written before": {
			"a chain takes as many reconciles as it has links, and no pause",
			chainOfInputs(10),
			11, 0, "9", nil,
		},
		"what is read is named by what was written": {
			"no other event would tell",
			`inputs: region: {apiVersion: "v1", kind: "ConfigMap", name: live.a.map.data.region}
components: a: objects: map: _map & {metadata: name: "a", data: region: "north"}
components: b: objects: map: _map & {metadata: name: "b", data: text: *inputs.region.object.data.name | "none"}`,
			3, 0, "far", nil,
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
			now := time.Unix(1000, 0)
			r := &reconcile.Reconciler{
				Kind: p.GroupVersionKind(), Resources: memory, Cluster: memory, Recorder: unrecorded{}, Now: func() time.Time { return now },
			}
			evaluated, key := program.NewMemo(p, 1), types.NamespacedName{Namespace: "default", Name: "shop"}
			objects, written := &objectWatches{owner: Owner{GroupKind: p.GroupVersionKind().GroupKind()}}, memory.Watch()
			enqueued, reconciles := true, 0
			var again time.Duration
			for ; enqueued && reconciles < 20; reconciles++ {
				now = now.Add(time.Minute)
				var err error
				if again, err = r.Step(t.Context(), key, evaluated); err != nil {
					t.Fatal(err)
				}
				enqueued = false
				for _, e := range written.Next() {
					enqueued = enqueued || len(objects.requests(t.Context(), e.Object)) > 0
				}
			}
			if reconciles > row.most || again != row.again {
				t.Errorf("%s: %d reconciles, want at most %d; again after %s, want %s", row.reason, reconciles, row.most, again, row.again)
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

// unrecorded forgets events.
type unrecorded struct{}

// Record implements reconcile.Recorder.
func (unrecorded) Record(*unstructured.Unstructured, rollout.Event) {}

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
