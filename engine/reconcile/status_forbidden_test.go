package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
)

// forbidding is a store that forbids to write a status, while err is set.
type forbidding struct {
	cluster.Cluster
	err error
}

// ApplyStatus implements cluster.Cluster.
func (g *forbidding) ApplyStatus(ctx context.Context, u *unstructured.Unstructured) error {
	if g.err != nil {
		return g.err
	}
	return g.Cluster.ApplyStatus(ctx, u)
}

func TestAStatusThatTheOperatorMayNotWriteIsSaidOnceWithARemedy(t *testing.T) {
	t.Parallel()
	shops := schema.GroupResource{Group: "example.com", Resource: "shops"}
	// The codes are those of an API server: test/attack has the policy itself.
	denied := apierrors.NewForbidden(shops, "shop", errors.New("ValidatingAdmissionPolicy 'x' with binding 'x' denied request: only alice"))
	denied.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "only the operator may write it, which is alice"}}
	for name, row := range map[string]struct {
		err  error
		says []string
	}{
		"a policy for another user": {denied, []string{"which is alice", "operetta install --operator-user", "kubectl auth whoami"}},
		"no permission":             {apierrors.NewForbidden(shops, "shop", errors.New("User bob cannot patch")), []string{"grant patch on the status", "User bob cannot patch"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fanout)
			store := &forbidding{Cluster: b.reconciler.Resources, err: row.err}
			b.reconciler.Resources = store
			act(t, b.memory, map[string]any{"list": ones(1)})
			said := func() []rollout.Event {
				return slices.DeleteFunc(slices.Clone(b.events), func(e rollout.Event) bool { return e.Reason != "StatusForbidden" })
			}
			var logged []string
			log := funcr.New(func(_, args string) {
				if strings.Contains(args, "the operator may not write the status") {
					logged = append(logged, args)
				}
			}, funcr.Options{})
			step := func() error {
				b.now = b.now.Add(time.Minute)
				_, err := b.reconciler.Reconcile(logr.NewContext(t.Context(), log), shopKey, b.program)
				return err
			}
			for range 5 {
				if err := step(); !apierrors.IsForbidden(err) {
					t.Fatalf("got %v, want an error, so that it is tried again", err)
				}
			}
			if got := said(); len(got) != 1 || !got[0].Warning {
				t.Fatalf("the events are %v, want one warning", got)
			}
			if len(logged) != 1 {
				t.Fatalf("the log is %q, want one line", logged)
			}
			for _, part := range row.says {
				if !strings.Contains(logged[0], part) {
					t.Errorf("the log %q does not say %q", logged[0], part)
				}
				if !strings.Contains(said()[0].Message, part) {
					t.Errorf("%q does not say %q", said()[0].Message, part)
				}
			}
			if got := len(objects(t, b.memory, "ConfigMap")); got != 0 {
				t.Errorf("%d ConfigMaps were written without an inventory", got)
			}
			store.err = nil
			b.rest()
			b.expect("it may write the status now", "True Ready")
			store.err = row.err
			act(t, b.memory, map[string]any{"list": ones(2)})
			if err := step(); err == nil || len(said()) != 2 {
				t.Errorf("it lost the right again: the error is %v, the events are %v", err, said())
			}
		})
	}
}

// A namespace that is being deleted loses its Roles in no order, and then what keeps it is a resource that nobody may touch.
func TestAResourceThatIsDeletedWithTheRolesOfItsNamespaceSaysWhatStillHelps(t *testing.T) {
	t.Parallel()
	shops := schema.GroupResource{Group: "example.com", Resource: "shops"}
	missing := apierrors.NewForbidden(shops, "shop", errors.New("User bob cannot patch"))
	denied := apierrors.NewForbidden(shops, "shop", errors.New("denied request: only alice"))
	denied.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "only alice"}}
	for name, row := range map[string]struct {
		reason string
		err    error
		act    map[string]any
		then   map[string]any
		want   bool
	}{
		"deleted":             {"a Role cannot be created in its namespace if that is being deleted", missing, map[string]any{"deleted": true}, nil, true},
		"deleted, and denied": {"no role helps against admission", denied, map[string]any{"deleted": true}, nil, false},
		"alive":               {"a Role can be created", missing, map[string]any{"name": "moved"}, nil, false},
		"deleted afterwards":  {"something else helps now", missing, map[string]any{"name": "moved"}, map[string]any{"deleted": true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, ordered)
			b.rest()
			b.hold("shop-top") // something remains to be reported
			store := &forbidding{Cluster: b.reconciler.Resources, err: row.err}
			b.reconciler.Resources = store
			act(t, b.memory, row.act)
			if _, err := b.step(); !apierrors.IsForbidden(err) {
				t.Fatalf("%s: got %v, want an error", row.reason, err)
			}
			if row.then != nil {
				act(t, b.memory, row.then)
				for range 3 {
					if _, err := b.step(); !apierrors.IsForbidden(err) {
						t.Fatalf("%s: got %v, want an error", row.reason, err)
					}
				}
			}
			said := slices.DeleteFunc(slices.Clone(b.events), func(e rollout.Event) bool { return e.Reason != "StatusForbidden" })
			if want := 1 + min(1, len(row.then)); len(said) != want {
				t.Fatalf("%s: the events are %v, want %d", row.reason, said, want)
			}
			if got := strings.Contains(said[len(said)-1].Message, "operetta rbac prints without --namespace"); got != row.want {
				t.Errorf("%s: %q says what still helps: %v, want %v", row.reason, said[len(said)-1].Message, got, row.want)
			}
		})
	}
}
