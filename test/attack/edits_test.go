package attack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A followedEdit is a change of a resource that had its effect.
type followedEdit struct {
	resource string
	after    time.Duration // since the attacks began
	// took is how long it took, and told is how long the API server took of that until it told those who watch: an object that
	// costs it seconds holds up the changes of all others of the kind.
	took, told time.Duration
	// read is how long the slowest request took by which its effect was looked for.
	read time.Duration
}

// own returns how long it took from when the operator could know of it.
func (e followedEdit) own() time.Duration { return e.took - e.told }

// String returns what a person who looks for the reason of a slow edit wants to know.
func (e followedEdit) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return fmt.Sprintf("%s after %s took %s, of which %s until watches were told of it; the slowest read took %s", e.resource, round(e.after), round(e.took), round(e.told), round(e.read))
}

// expectSoon prints how long edits took, and which part of that was not the API server's, and expects that 99 of 100 took less than the limit, if there
// are enough for that.
func expectSoon(t *testing.T, edits []followedEdit) {
	t.Helper()
	if len(edits) == 0 {
		t.Fatal("no edit was followed")
	}
	quantiles := func(what string, of func(followedEdit) time.Duration) (p99 time.Duration) {
		slices.SortFunc(edits, func(a, b followedEdit) int { return cmp.Compare(of(a), of(b)) })
		p99 = of(edits[(len(edits)*99+99)/100-1])
		t.Logf("%d edits, %s: median %s, p99 %s, slowest %s", len(edits), what, of(edits[len(edits)/2]), p99, of(edits[len(edits)-1]))
		return p99
	}
	quantiles("since watches were told", followedEdit.own)
	p99 := quantiles("in all", func(e followedEdit) time.Duration { return e.took })
	for _, e := range edits[max(0, len(edits)-10):] {
		t.Log(e)
	}
	if harness.Long() && p99 > slowest {
		t.Errorf("one in a hundred edits took more than %s", p99)
	}
}

// edit changes one resource after the other, in two goroutines, until the context ends. It returns how
// long each change took to have an effect.
func (h *hostedOperator) edit(ctx context.Context, seen *generations, good []*unstructured.Unstructured) []followedEdit {
	began := time.Now()
	var mu sync.Mutex
	var out []followedEdit
	var people sync.WaitGroup
	for first := range 2 {
		people.Go(func() {
			for i := first; ctx.Err() == nil; i += 2 {
				after := time.Since(began)
				e := h.editOne(seen, good[i%len(good)], i)
				e.after = after
				mu.Lock()
				out = append(out, e)
				mu.Unlock()
			}
		})
	}
	people.Wait()
	return out
}

// editOne changes a resource, and returns how long the change took to have an effect.
func (h *hostedOperator) editOne(seen *generations, cr *unstructured.Unstructured, nth int) followedEdit {
	spec := map[string]any{"text": fmt.Sprint("text ", nth)}
	if cr.GetKind() == "WebApp" {
		spec = map[string]any{"maxUnavailable": int64(1 + nth/len(cr.GetName())%2), "files": map[string]any{"nth": fmt.Sprint(nth)}}
	}
	out := followedEdit{resource: cr.GetKind() + " " + cr.GetAPIVersion() + " " + cr.GetName()}
	changed := h.site.Patch(cr, harness.Spec(spec))
	began := time.Now() // the API server has it, which is under attack as well
	harness.Within(h.t, time.Minute, "an edit of "+cr.GetName()+" to be followed", func() error {
		asked := time.Now()
		got, err := harness.GetOrNil(h.t.Context(), changed)
		out.read = max(out.read, time.Since(asked))
		if err != nil {
			return err
		}
		if harness.Field(got, "status", "observedGeneration") != changed.GetGeneration() {
			return fmt.Errorf("it is observed in generation %v, not in %d", harness.Field(got, "status", "observedGeneration"), changed.GetGeneration())
		}
		return nil
	})
	out.took = time.Since(began)
	if at, ok := seen.at(changed); ok {
		out.told = min(max(0, at.Sub(began)), out.took)
	}
	return out
}

// generations are when a watch has told of the generations of resources for the first time. It is safe for concurrent use.
type generations struct {
	mu   sync.Mutex
	seen map[generation]time.Time
}

// A generation is one of a resource.
type generation struct {
	uid types.UID
	of  int64
}

// watchGenerations watches the kinds of some resources until the context ends, as the operator does, in all namespaces.
func watchGenerations(ctx context.Context, t *testing.T, of []*unstructured.Unstructured) *generations {
	t.Helper()
	out := &generations{seen: map[generation]time.Time{}}
	kinds := map[string]bool{}
	for _, cr := range of {
		if kinds[cr.GetAPIVersion()] {
			continue
		}
		kinds[cr.GetAPIVersion()] = true
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(cr.GetAPIVersion())
		list.SetKind(cr.GetKind() + "List")
		w, err := harness.Suite.Admin.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{}})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for e := range w.ResultChan() {
				if u, ok := e.Object.(*unstructured.Unstructured); ok {
					out.note(u, time.Now())
				}
			}
		}()
	}
	return out
}

// note notes that a watch told of a resource.
func (g *generations) note(u *unstructured.Unstructured, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if k := (generation{u.GetUID(), u.GetGeneration()}); g.seen[k].IsZero() {
		g.seen[k] = at
	}
}

// at returns when a watch has told of the generation of a resource, if it has.
func (g *generations) at(u *unstructured.Unstructured) (time.Time, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.seen[generation{u.GetUID(), u.GetGeneration()}]
	return at, ok
}
