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

// A round is how long somebody fights, and what that may cost the API server for each
// resource: all requests of the operator but watches and its lease, Events included.
type round struct {
	lasts    time.Duration
	requests int
}

// fights returns how long a test lets somebody fight.
func fights() round {
	if harness.Long() {
		return round{time.Minute, 60}
	}
	return round{15 * time.Second, 45}
}

// fought is a package with an object that others fight over, and one that they do not.
const fought = `
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

// onEach calls f with each event about an object, until the test or its context ends.
func (s *site) onEach(ctx context.Context, name string, f func(watch.EventType, *unstructured.Unstructured)) {
	s.T.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.FromAPIVersionAndKind("v1", "ConfigMapList"))
	w, err := harness.World.Admin.Watch(ctx, l, client.InNamespace(s.Namespace), client.MatchingFields{"metadata.name": name})
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

// reverts changes a field of an object back at each event, as another controller would.
func (s *site) reverts(ctx context.Context, name, value string) {
	s.T.Helper()
	s.onEach(ctx, name, func(e watch.EventType, u *unstructured.Unstructured) {
		if e != watch.Deleted && harness.Field(u, "data", "text") != value {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"data": {"text": "`+value+`"}}`))
			_ = harness.World.Admin.Patch(ctx, u, patch, client.FieldOwner("rival")) // it may be gone
		}
	})
}

// deletes deletes an object whenever it is there.
func (s *site) deletes(ctx context.Context, name string) {
	s.T.Helper()
	s.onEach(ctx, name, func(e watch.EventType, u *unstructured.Unstructured) {
		if e != watch.Deleted {
			_ = harness.World.Admin.Delete(ctx, u) // it may be gone
		}
	})
}

// expectBoundedRequests lets a fight last, and looks at what it has cost.
func (s *site) expectBoundedRequests(from controlplane.AuditMark, resources int) {
	s.T.Helper()
	r := fights()
	if err := s.after(r.lasts); err != nil {
		s.T.Fatal(err)
	}
	asked := s.OperatorRequests(from).Unlisted()
	s.T.Logf("in %s: %d requests for %d resources: %s", r.lasts, len(asked), resources, asked)
	if len(asked) > resources*r.requests {
		s.T.Errorf("that is more than %d for each", r.requests)
	}
}

func TestE3WhoeverFightsCostsFewRequests(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body  string
		fight func(ctx context.Context, s *site)
		// said are the parts of what Ready says, if the fight is seen there.
		said []string
	}{
		"reverts": {
			fought, func(ctx context.Context, s *site) { s.reverts(ctx, "note", "theirs") },
			[]string{"data.text is changed by manager rival", "at least 5 times"},
		},
		"deletes": {
			fought, func(ctx context.Context, s *site) { s.deletes(ctx, "note") },
			[]string{"it is deleted each time it was created"},
		},
		"mutates": {fought, func(_ context.Context, s *site) { s.mutateConfigMaps() }, nil},
		"counts": {
			strings.Replace(fought, "text: cr.spec.text", `text: *"\(live.note.cm.data.text)x" | "x"`, 1),
			func(context.Context, *site) {},
			[]string{"data.text is rendered differently each time"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := newSmall(t, name, row.body)
			s.Operate(p.Dir)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			row.fight(ctx, s)
			from := harness.Mark(t)
			cr := s.Create(p.Thing(s.Site, "shop", map[string]any{}))
			s.expectBoundedRequests(from, 1)
			if len(row.said) > 0 {
				t.Log(s.ExpectNotReady(cr, "KeepsChanging", row.said...))
			} else {
				s.ExpectAllReady(cr)
			}
			s.ExpectData("other", "size", "1")
			// A person is answered at once.
			began := time.Now()
			s.Patch(cr, harness.Spec(map[string]any{"size": int64(2)}))
			s.ExpectData("other", "size", "2")
			if name != "deletes" {
				s.ExpectData("note", "size", "2")
			}
			if took := harness.Since(began); took > 3*time.Second {
				t.Errorf("a change of the spec took %s", took)
			}
			if !harness.Long() || len(row.said) == 0 || name == "counts" {
				return
			}
			s.ExpectNotReady(cr, "KeepsChanging", row.said...)
			stop()
			took := harness.Within(t, 2*time.Minute, "the resource to be Ready again", func() error {
				u, err := harness.Read(t.Context(), cr)
				if err != nil {
					return err
				}
				return harness.Ready(u)
			})
			t.Logf("Ready %s after the end of the fight", took.Round(time.Millisecond))
		})
	}
}

// circle is a package whose resources read each other's status.
const circle = `
#Spec: other: string
inputs: there: {apiVersion: "circle.example.com/v1", kind: "Thing", name: cr.spec.other}
status: n: (*inputs.there.object.status.n | 0) + 1
components: note: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: n: "\((*inputs.there.object.status.n | 0) + 1)"}
`

func TestE3ResourcesInACircleCostFewRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "circle", circle)
	s.Operate(p.Dir)
	from := harness.Mark(t)
	a := s.Create(p.Thing(s.Site, "a", map[string]any{"other": "b"}))
	s.Create(p.Thing(s.Site, "b", map[string]any{"other": "a"}))
	s.expectBoundedRequests(from, 2)
	if n, _ := harness.Field(s.ExpectThat(a, "to be there", harness.Exists), "status", "n").(int64); n < 3 {
		t.Errorf("they are in no circle: %d", n)
	}
}

// mutateConfigMaps makes the API server itself rewrite a field of each ConfigMap of the
// site.
func (s *site) mutateConfigMaps() {
	s.T.Helper()
	s.mutate("", "configmaps", map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
		"expression": `Object{data: {"text": "theirs"}}`,
	}})
	harness.Eventually(s.T, "the admission policy", func() error {
		u := s.ConfigMap("probe", map[string]any{"text": "ours"})
		if err := harness.World.Admin.Create(s.T.Context(), u); err != nil {
			return err
		}
		defer s.Delete(u)
		if harness.Field(u, "data", "text") != "theirs" {
			return harness.ErrNotYet
		}
		return nil
	})
}
