package rollout_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

// looking is a cluster that notes which objects are read live.
type looking struct {
	cluster.Cluster

	mu   sync.Mutex
	read []string
}

func (c *looking) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	c.read = append(c.read, ref.Name)
	c.mu.Unlock()
	return c.Cluster.GetLive(ctx, ref)
}

// looked returns the objects that were read live since the last call, sorted.
func (c *looking) looked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.read
	c.read = nil
	slices.Sort(out)
	return strings.Join(out, " ")
}

// three renders the ConfigMaps a, b and c of one component, with a policy of a.
const three = `
components: web: {
	objects: {
		for n in ["a", "b", "c"] {(n): {apiVersion: "v1", kind: "ConfigMap", metadata: name: n, data: size: "\(cr.spec.size)"}}
	}
	policy: a: {POLICY}
}
`

// An API server creates an object only if there is none, so the first write of a component needs no look. Before the first
// write, the others do: a component that may not have one of its objects gets none.
func TestTheFirstNewObjectOfAComponentIsCreatedUnseen(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		policy string
		// theirs are the objects that somebody else has.
		theirs []string
		want   string
		looked string
		writes []string
	}{
		"all are new": {
			reason: "a is written first", want: "web: Verified Verified", looked: "b c",
			writes: []string{"create ConfigMap a", "create ConfigMap b", "create ConfigMap c"},
		},
		"the first is somebody else's": {
			reason: "the refusal has to say whose", theirs: []string{"a"}, want: "web: Failed OwnedByAnother", looked: "a b c",
		},
		"another one is somebody else's": {
			reason: "a would be half a component", theirs: []string{"c"}, want: "web: Failed OwnedByAnother", looked: "b c",
		},
		"the first may be taken over": {
			reason: "it probably exists", policy: "adopt: true", want: "web: Verified Verified", looked: "a b c",
			writes: []string{"create ConfigMap a", "create ConfigMap b", "create ConfigMap c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strings.Replace(three, "POLICY", row.policy, 1))
			for _, name := range row.theirs {
				w.put("somebody", object(kinds["ConfigMap"], w.owner.Namespace, name))
			}
			c := &looking{Cluster: w.cluster}
			w.cluster = c
			w.wrote()
			result := w.mustRun()
			expectStates(t, result, row.want)
			if diff := cmp.Diff(row.looked, c.looked()); diff != "" {
				t.Errorf("%s (-want +looked):\n%s", row.reason, diff)
			}
			w.expectWrites(row.reason, row.writes...)
			if message := message(result, "web"); len(row.theirs) > 0 && !strings.Contains(message, "it exists already") {
				t.Errorf("it does not say why: %s", message)
			}
		})
	}
}

// What an earlier rollout meant to create may have been refused, or created by a process that has crashed since.
func TestAnObjectThatWasMeantBeforeIsLookedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(three, "POLICY", "", 1))
	theirs := object(kinds["ConfigMap"], w.owner.Namespace, "a")
	w.put("somebody", theirs)
	c := &looking{Cluster: w.cluster}
	w.cluster = c
	for round, want := range []string{"a b c", "a", "a"} {
		expectStates(t, w.mustRun(), "web: Failed OwnedByAnother")
		if diff := cmp.Diff(want, c.looked()); diff != "" {
			t.Errorf("round %d (-want +looked):\n%s", round, diff)
		}
	}
	w.delete(w.object("ConfigMap", "a"))
	w.wrote()
	expectStates(t, w.mustRun(), "web: Verified Verified")
	if diff := cmp.Diff("a b c", c.looked()); diff != "" {
		t.Errorf("(-want +looked):\n%s", diff)
	}
	w.expectWrites("nobody else has it now", "create ConfigMap a", "create ConfigMap b", "create ConfigMap c")
}

// A preview writes nothing, so it has to look at everything that it says is created.
func TestAPreviewLooksAtAllThatItSaysIsCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(three, "POLICY", "", 1))
	w.put("somebody", object(kinds["ConfigMap"], w.owner.Namespace, "a"))
	if p := w.preview(); p.Components[0].State != "Failed" || p.Components[0].Reason != "OwnedByAnother" {
		t.Errorf("it is %s %s", p.Components[0].State, p.Components[0].Reason)
	}
}
