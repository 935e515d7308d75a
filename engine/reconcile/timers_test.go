package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
)

// timed is a package without a time to come again.
const timed = `
components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: size: "\(cr.spec.size)"}
`

func TestAResourceIsVisitedAgainAfterRequeueAfter(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		body   string
		spec   map[string]any
		want   time.Duration
	}{
		"never":    {"the package does not ask for it", "", nil, 0},
		"constant": {"the package says when", `requeueAfter: "30s"`, nil, 30 * time.Second},
		"from the resource": {
			"the resource says when", `requeueAfter: cr.spec.every`, map[string]any{"every": "2m"}, 2 * time.Minute,
		},
		"a default": {
			"the resource may say when", `requeueAfter: *cr.spec.every | "45s"`, nil, 45 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, timed+row.body)
			if row.spec != nil {
				act(t, b.memory, row.spec)
			}
			if got := b.rest(); got != row.want {
				t.Errorf("%s: it comes again after %s, want %s", row.reason, got, row.want)
			}
		})
	}
}

func TestAChangedRequeueAfterCountsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, timed+`requeueAfter: cr.spec.every`)
	for _, every := range []string{"1m0s", "5s"} {
		act(t, b.memory, map[string]any{"every": every})
		if again, err := b.step(); err != nil || again.String() != every {
			t.Errorf("it comes again after %s (error %v), want %s", again, err, every)
		}
	}
}

// mute is a store that takes no status.
type mute struct{ cluster.Cluster }

// ApplyStatus implements cluster.Cluster.
func (mute) ApplyStatus(context.Context, *unstructured.Unstructured) error {
	return errors.New("no space left")
}

func TestAnErrorPutsNoTimerOff(t *testing.T) {
	t.Parallel()
	const body = timed + `
components: other: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "other"}
`
	refused := func(b *bench) {
		b.refuse("ConfigMap", "other", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "other", errors.New("exceeded quota")))
	}
	for name, row := range map[string]struct {
		reason  string
		body    string
		prepare func(*bench)
		want    time.Duration
	}{
		"a component that is refused, and requeueAfter": {
			"the package asked for it", `requeueAfter: "30s"`,
			refused,
			30 * time.Second,
		},
		"a component that is refused, and a kind that is awaited": {
			"H1: no event says that the kind is served now",
			`components: third: objects: o: {apiVersion: "db.example.com/v1", kind: "Database", metadata: name: "main"}`,
			refused,
			5 * time.Second,
		},
		"a status that is not taken": {
			"who waits for the time does not care", `requeueAfter: "30s"`,
			func(b *bench) { b.reconciler.Resources = mute{b.reconciler.Resources} },
			30 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, body+row.body)
			row.prepare(b)
			again, err := b.step()
			if err == nil || again != row.want {
				t.Errorf("%s: it comes again after %s, error %v; want %s and an error", row.reason, again, err, row.want)
			}
		})
	}
}
