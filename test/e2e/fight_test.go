package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A fight is how long another client fights the operator, and how many requests of the operator it may
// cost for each resource, including Events and without watches and its lease.
type fight struct {
	lasts    time.Duration
	requests int
}

// fightSize returns the duration and the budget of a fight.
func fightSize() fight {
	if harness.Long() {
		return fight{time.Minute, 60}
	}
	return fight{15 * time.Second, 45}
}

// foughtBody is a package with an object that another client fights over, and one that it does not.
const foughtBody = `
#Spec: {text: string | *"ours", size: int | *1}
live: _
components: note: objects: cm: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "note"
	data: {text: cr.spec.text, size: "\(cr.spec.size)"}
}
components: other: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "other", data: size: "\(cr.spec.size)"}
`

// watchEach calls f with each event about an object, until the test or its context ends.
func (s *env) watchEach(ctx context.Context, name string, f func(watch.EventType, *unstructured.Unstructured)) {
	s.T.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.FromAPIVersionAndKind("v1", "ConfigMapList"))
	w, err := harness.Suite.Admin.Watch(ctx, l, client.InNamespace(s.Namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		s.T.Fatal(err)
	}
	go func() {
		defer w.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case e, open := <-w.ResultChan():
				if !open {
					return
				}
				if u, ok := e.Object.(*unstructured.Unstructured); ok {
					f(e.Type, u)
				}
			}
		}
	}()
}

// revertData reverts a field of an object at each event, as another controller would.
func (s *env) revertData(ctx context.Context, name, value string) {
	s.T.Helper()
	s.watchEach(ctx, name, func(e watch.EventType, u *unstructured.Unstructured) {
		if e != watch.Deleted && harness.Field(u, "data", "text") != value {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"data": {"text": "`+value+`"}}`))
			_ = harness.Suite.Admin.Patch(ctx, u, patch, client.FieldOwner("rival")) // it may be gone
		}
	})
}

// deleteRepeatedly deletes an object whenever it exists.
func (s *env) deleteRepeatedly(ctx context.Context, name string) {
	s.T.Helper()
	s.watchEach(ctx, name, func(e watch.EventType, u *unstructured.Unstructured) {
		if e != watch.Deleted {
			_ = harness.Suite.Admin.Delete(ctx, u) // it may be gone
		}
	})
}

// expectBoundedRequests lets a fight last, and expects the requests to stay within the budget.
func (s *env) expectBoundedRequests(from controlplane.AuditMark, resources int) {
	s.T.Helper()
	r := fightSize()
	if err := s.after(r.lasts); err != nil {
		s.T.Fatal(err)
	}
	asked := s.OperatorRequests(from).WithoutListsAndWatches()
	s.T.Logf("in %s: %d requests for %d resources: %s", r.lasts, len(asked), resources, asked)
	if len(asked) > resources*r.requests {
		s.T.Errorf("that is more than %d for each", r.requests)
	}
}

func TestE3WhoeverFightsCostsFewRequests(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body  string
		fight func(ctx context.Context, s *env)
		// said are the parts of what Ready says, if the fight is seen there.
		said []string
	}{
		"reverts": {
			foughtBody, func(ctx context.Context, s *env) { s.revertData(ctx, "note", "theirs") },
			[]string{"data.text is changed by manager rival", "at least 5 times"},
		},
		"deletes": {
			foughtBody, func(ctx context.Context, s *env) { s.deleteRepeatedly(ctx, "note") },
			[]string{"it is deleted each time it was created"},
		},
		"mutates": {foughtBody, func(_ context.Context, s *env) { s.mutateConfigMaps() }, nil},
		"counts": {
			strings.Replace(foughtBody, "text: cr.spec.text", `text: *"\(live.note.cm.data.text)x" | "x"`, 1),
			func(context.Context, *env) {},
			[]string{"data.text is rendered differently each time"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			p := newTestPackage(t, name, row.body)
			s.StartOperator(p.Dir)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			row.fight(ctx, s)
			from := harness.MarkAudit(t)
			cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
			s.expectBoundedRequests(from, 1)
			if len(row.said) > 0 {
				t.Log(s.ExpectNotReady(cr, "KeepsChanging", row.said...))
			} else {
				s.ExpectResourceReady(cr)
			}
			s.ExpectData("other", "size", "1")
			// A change of the spec is acted upon at once.
			began := time.Now()
			s.Patch(cr, harness.Spec(map[string]any{"size": int64(2)}))
			s.ExpectData("other", "size", "2")
			if name != "deletes" {
				s.ExpectData("note", "size", "2")
			}
			harness.ExpectWithin(t, 3*time.Second, "a change of the spec", time.Since(began))
			if !harness.Long() || len(row.said) == 0 || name == "counts" {
				return
			}
			s.ExpectNotReady(cr, "KeepsChanging", row.said...)
			stop()
			took := harness.Within(t, 2*time.Minute, "the resource to be Ready again", func() error {
				u, err := harness.GetOrNil(t.Context(), cr)
				if err != nil {
					return err
				}
				return harness.Ready(u)
			})
			t.Logf("Ready %s after the end of the fight", took.Round(time.Millisecond))
		})
	}
}

// circleBody is a package whose resources read each other's status.
const circleBody = `
#Spec: other: string
inputs: there: {apiVersion: "circle.example.com/v1", kind: "Thing", name: cr.spec.other}
status: n: (*inputs.there.object.status.n | 0) + 1
components: note: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: n: "\((*inputs.there.object.status.n | 0) + 1)"}
`

func TestE3ResourcesInACircleCostFewRequests(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "circle", circleBody)
	s.StartOperator(p.Dir)
	from := harness.MarkAudit(t)
	a := s.Create(p.Thing(s.Env, "a", map[string]any{"other": "b"}))
	s.Create(p.Thing(s.Env, "b", map[string]any{"other": "a"}))
	s.expectBoundedRequests(from, 2)
	if n, _ := harness.Field(s.ExpectObject(a, "to be there", harness.Exists), "status", "n").(int64); n < 3 {
		t.Errorf("they are in no circle: %d", n)
	}
}

// mutateConfigMaps adds an admission policy that rewrites a field of each ConfigMap of the test.
func (s *env) mutateConfigMaps() {
	s.T.Helper()
	s.mutate("", "configmaps", map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
		"expression": `Object{data: {"text": "theirs"}}`,
	}})
	harness.Eventually(s.T, "the admission policy", func() error {
		u := s.ConfigMap("probe", map[string]any{"text": "ours"})
		if err := harness.Suite.Admin.Create(s.T.Context(), u); err != nil {
			return err
		}
		defer s.Delete(u)
		if harness.Field(u, "data", "text") != "theirs" {
			return harness.ErrNotYet
		}
		return nil
	})
}
