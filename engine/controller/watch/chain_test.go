package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/test/inline"
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
		"each of ten waits for what is named by what was written before": {
			"a chain of any length takes one reconcile, and one more that finds nothing to do",
			chainOfInputs(10, "inputs.i%d.object.data.next"),
			2, 0, "9", nil,
		},
		"each of ten waits for what was written before, as an input": {
			"the cache does not have it yet",
			chainOfOwnInputs(10),
			2, 0, "x", nil,
		},
		"each of ten changes with what is named by what was written before": {
			"a component is written once in a reconcile, so this chain takes as many as it has links, and no pause",
			chainOfInputs(10, `*inputs.i%d.object.data.next | "none"`),
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
			memory.Serve(inline.Object(t, "{apiVersion: example.com/v1, kind: Shop}").GroupVersionKind().GroupKind(), cluster.Namespaced)
			put(t, memory, "{apiVersion: example.com/v1, kind: Shop, metadata: {namespace: default, name: shop}}")
			put(t, memory, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: north}, data: {name: far}}")
			for i := range 11 {
				put(t, memory, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: "%d"}, data: {next: "%d"}}`, i, i+1))
			}
			memory.SetAdmission(row.refuse)
			p := inline.Program(t, shop+"_map: {apiVersion: \"v1\", kind: \"ConfigMap\"}\n"+row.body)
			now := time.Unix(1000, 0)
			r := &reconcile.Reconciler{
				Kind: p.GroupVersionKind(), Resources: memory, Cluster: memory, Recorder: unrecorded{}, Now: func() time.Time { return now },
			}
			evaluated, key := evaluate.New(p, evaluate.Options{}), types.NamespacedName{Namespace: "default", Name: "shop"}
			objects, written := &objectWatches{owner: OwnerKind{GroupKind: p.GroupVersionKind().GroupKind()}}, memory.Watch()
			enqueued, reconciles := true, 0
			var again time.Duration
			for ; enqueued && reconciles < 20; reconciles++ {
				now = now.Add(time.Minute)
				var err error
				if again, err = r.Reconcile(t.Context(), key, evaluated); err != nil {
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
			b, err := memory.GetLive(t.Context(), cluster.RefOf(inline.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: b}}")))
			if text, _, _ := unstructured.NestedString(b.Object, "data", "text"); err != nil || text != row.want {
				t.Errorf("%s: it says %q (error %v), want %q", row.reason, text, err, row.want)
			}
		})
	}
}

// chainOfInputs returns components each of which reads an object that is named by the
// live object of the one before, and says what an expression makes of it. The last is b.
func chainOfInputs(links int, expression string) string {
	var out strings.Builder
	for i := range links {
		name, text := fmt.Sprint("l", i), `"0"`
		if i == links-1 {
			name = "b"
		}
		if i > 0 {
			fmt.Fprintf(&out, "inputs: i%d: {apiVersion: \"v1\", kind: \"ConfigMap\", name: live.l%d.map.data.text}\n", i, i-1)
			text = fmt.Sprintf(expression, i)
		}
		fmt.Fprintf(&out, "components: %s: objects: map: _map & {metadata: name: %q, data: text: %s}\n", name, name, text)
	}
	return out.String()
}

// chainOfOwnInputs returns components each of which reads the object of the one before as an input. The
// last is b.
func chainOfOwnInputs(links int) string {
	var out strings.Builder
	for i := range links {
		name, text := fmt.Sprint("l", i), `"x"`
		if i == links-1 {
			name = "b"
		}
		if i > 0 {
			fmt.Fprintf(&out, "inputs: i%d: {apiVersion: \"v1\", kind: \"ConfigMap\", name: live.l%d.map.metadata.name}\n", i, i-1)
			text = fmt.Sprintf("inputs.i%d.object.data.text", i)
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
	if _, err := m.Put("person", inline.Object(t, text)); err != nil {
		t.Fatal(err)
	}
}
