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
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
)

// forbidding is a store that forbids to write a status while err is set, and a finalizer while finalizers is.
type forbidding struct {
	cluster.Cluster
	err, finalizers error
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
	// A policy chooses the code of its denial, and 422 is what it has unless it says something else.
	invalid := apierrors.NewForbidden(shops, "shop", errors.New("ValidatingAdmissionPolicy 'x' with binding 'x' denied request: not before Monday"))
	invalid.ErrStatus.Reason, invalid.ErrStatus.Code = metav1.StatusReasonInvalid, 422
	invalid.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "not before Monday"}}
	wrong := apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Shop"}, "shop", field.ErrorList{field.Invalid(field.NewPath("status", "size"), "x", "must be an integer")})
	for name, row := range map[string]struct {
		err  error
		says []string
	}{
		"a policy that denies as invalid": {invalid, []string{"admission denies it: not before Monday"}},
		"a definition that differs":       {wrong, []string{"does not allow status.size", "must be an integer", "operetta crd"}},
		"a policy for another user":       {denied, []string{"which is alice", "operetta install --operator-user", "kubectl auth whoami"}},
		"no permission":                   {apierrors.NewForbidden(shops, "shop", errors.New("User bob cannot patch")), []string{"grant patch on the status", "User bob cannot patch"}},
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
				if err := step(); !errors.Is(err, row.err) {
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

// ApplyFinalizers implements cluster.Cluster.
func (g *forbidding) ApplyFinalizers(ctx context.Context, u *unstructured.Unstructured) error {
	if g.finalizers != nil {
		return g.finalizers
	}
	return g.Cluster.ApplyFinalizers(ctx, u)
}

func TestAFinalizerThatTheOperatorMayNotWriteIsSaidOnce(t *testing.T) {
	t.Parallel()
	denied := apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "shops"}, "shop", errors.New("denied request: not before Monday"))
	denied.ErrStatus.Reason, denied.ErrStatus.Details.Causes = metav1.StatusReasonInvalid, []metav1.StatusCause{{Message: "not before Monday"}}
	b := newBench(t, ordered)
	store := &forbidding{Cluster: b.reconciler.Resources, finalizers: denied}
	b.reconciler.Resources = store
	said := func() []rollout.Event {
		return slices.DeleteFunc(slices.Clone(b.events), func(e rollout.Event) bool { return e.Reason != "FinalizerForbidden" })
	}
	for range 4 {
		if _, err := b.step(); !errors.Is(err, denied) {
			t.Fatalf("got %v, want an error, so that it is tried again", err)
		}
	}
	if got := said(); len(got) != 1 || !strings.Contains(got[0].Message, "The operator may not write the finalizer: admission denies it: not before Monday") {
		t.Fatalf("the events are %v, want one that says why", got)
	}
	store.finalizers = nil
	b.rest()
	b.expect("it may write the finalizer now", "True Ready")
	if got := said(); len(got) != 1 {
		t.Errorf("the events are %v, want no more", got)
	}
	store.finalizers = denied
	shop := b.find("Shop", shopKey.Name)
	shop.SetFinalizers(nil)
	if _, err := b.memory.Put("rival", shop); err != nil {
		t.Fatal(err)
	}
	if _, err := b.step(); !errors.Is(err, denied) || len(said()) != 2 {
		t.Errorf("it lost the finalizer and the right again: the error is %v, the events are %v", err, said())
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
