package watch

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// played are inputs whose watches a test plays.
type played struct {
	*Inputs
	t *testing.T

	mu sync.Mutex
	// running are the watches that have not ended, by what they watch.
	running map[string]*playedWatch
	synced  int
	woken   []string
}

// playedWatch is one watch.
type playedWatch struct {
	*informertest.FakeInformers
	key   inputKey
	ended func()
}

// Start implements cache.Cache.
func (p *playedWatch) Start(ctx context.Context) error {
	<-ctx.Done()
	p.ended()
	return nil
}

// List implements client.Reader.
func (p *playedWatch) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}

func play(t *testing.T) *played {
	t.Helper()
	p := &played{t: t, running: map[string]*playedWatch{}}
	p.Inputs = newInputs(func(_ InputEvent, owners ...types.NamespacedName) {
		for _, owner := range owners {
			p.woken = append(p.woken, owner.Name)
		}
	}, p.begin)
	p.ctx = t.Context()
	return p
}

func (p *played) begin(key inputKey) (Cache, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := key.name + key.selector
	w := &playedWatch{FakeInformers: &informertest.FakeInformers{}, key: key}
	w.ended = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.running[name] == w {
			delete(p.running, name)
		}
	}
	p.synced++
	p.running[name] = w
	return Cache{Cache: w, errors: &watchErrors{}}, nil
}

// expectWatches waits until just some things are watched, and compares how many watches
// have ever begun.
func (p *played) expectWatches(reason string, synced int, want ...string) {
	p.t.Helper()
	var got []string
	for end := time.Now().Add(machine.Patience); ; {
		p.mu.Lock()
		got = nil
		for name := range p.running {
			got = append(got, name)
		}
		n := p.synced
		p.mu.Unlock()
		slices.Sort(got)
		if slices.Equal(got, want) && n == synced {
			return
		}
		if n > synced || time.Now().After(end) {
			p.t.Fatalf("%s: %d watches have begun, not %d; watched is (-want +got):\n%s", reason, n, synced, cmp.Diff(want, got))
		}
		select {
		case <-p.t.Context().Done():
		case <-time.After(time.Millisecond):
		}
	}
}

// reconcile plays a rollout of a resource that reads some inputs, all of which it still
// refers to in the end.
func (p *played) reconcile(owner string, reads ...string) {
	p.t.Helper()
	var refers []program.Input
	for _, r := range reads {
		p.read(owner, r)
		refers = append(refers, input(r))
	}
	p.Refer(named(owner), refers, false)
}

func (p *played) read(owner, name string) {
	p.t.Helper()
	if _, err := p.List(p.t.Context(), named(owner), rollout.SelectionOf(input(name))); err != nil {
		p.t.Fatal(err)
	}
}

// input is a ConfigMap by its name, or those that a selector such as a=b selects.
func input(name string) program.Input {
	in := program.Input{Name: "in", Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "default", Object: name}
	if k, v, selects := strings.Cut(name, "="); selects {
		in.Object, in.Selector = "", map[string]string{k: v}
	}
	return in
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

func TestAWatchLastsAsLongAsSomebodyRefersToWhatItWatches(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.reconcile("one", "a")
	p.reconcile("one", "a")
	p.reconcile("two", "a")
	p.expectWatches("two resources share one watch", 1, "a")
	p.reconcile("one", "b")
	p.expectWatches("one resource refers to something else now, the other does not", 2, "a", "b")
	p.reconcile("two", "b")
	p.expectWatches("nobody refers to a any more: its name is another one in each spec", 2, "b")
	p.reconcile("one", "b", "app=web")
	p.expectWatches("a selector has a watch of its own", 3, "app=web", "b")
	p.reconcile("one")
	p.expectWatches("another version of the package reads nothing", 3, "b")
	p.Refer(named("two"), nil, false)
	p.expectWatches("the last one that referred to anything is gone", 3)
	p.reconcile("three", "a")
	p.expectWatches("a watch that has ended begins anew", 4, "a")
	p.Refer(named("three"), nil, false)
	p.expectWatches("it is gone as well", 4)
	if len(p.refers) != 0 || len(p.watched) != 0 {
		t.Errorf("something is remembered of what is gone: %v, %v", p.refers, p.watched)
	}
}

func TestWhatARolloutReadsOnItsWayIsWatchedUntilItsEnd(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.read("one", "a")
	p.read("one", "b")
	p.Refer(named("two"), nil, false)
	p.expectWatches("another resource's end is not that of what one is about to refer to", 2, "a", "b")
	p.Refer(named("one"), []program.Input{input("b")}, false)
	p.expectWatches("in the end it refers to one of the two", 2, "b")
}

// Whoever may change the spec of a resource could make it fail with another name each time.
func TestAResourceWhoseRolloutsFailWatchesNoMoreThanTheLastOneHasAskedFor(t *testing.T) {
	t.Parallel()
	p := play(t)
	fail := func(reads ...string) {
		var asked []program.Input
		for _, r := range reads {
			p.read("one", r)
			asked = append(asked, input(r))
		}
		p.Refer(named("one"), asked, true)
	}
	fail("x")
	fail("y")
	p.expectWatches("none has succeeded yet", 2, "y")
	p.reconcile("one", "a", "b")
	p.expectWatches("one has succeeded", 4, "a", "b")
	for _, name := range []string{"c", "d", "e"} {
		fail("a", name)
	}
	p.expectWatches("what the successful one has read is still awaited, and what the last failed one has", 7, "a", "b", "e")
	fail()
	p.expectWatches("the last one has asked for nothing", 7, "a", "b")
	p.read("one", "f")
	p.expectWatches("a rollout is under way", 8, "a", "b", "f")
	p.reconcile("one", "e")
	p.expectWatches("one has succeeded again", 9, "e")
	p.Refer(named("one"), nil, false)
	p.expectWatches("the resource is gone", 9)
	if len(p.refers) != 0 || len(p.watched) != 0 {
		t.Errorf("something is remembered of what is gone: %v, %v", p.refers, p.watched)
	}
}

func TestAChangeWakesExactlyWhoRefersToWhatHasChanged(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.reconcile("one", "a")
	p.reconcile("two", "a", "app=web")
	p.reconcile("three", "b")
	p.reconcile("four", "a")
	p.reconcile("four", "b")
	before, after := inline.Object(t, "{metadata: {name: x, resourceVersion: '1'}}"), inline.Object(t, "{metadata: {name: x, resourceVersion: '2'}}")
	ended := p.running["b"]
	for _, row := range []struct {
		reason string
		act    func()
		want   []string
	}{
		{"it appears", func() { p.handler(p.running["a"].key).OnAdd(after, false) }, []string{"one", "two"}},
		{"what is there when the watch begins was read by whoever began it", func() { p.handler(p.running["a"].key).OnAdd(after, true) }, nil},
		{"it changes", func() { p.handler(p.running["a"].key).OnUpdate(before, after) }, []string{"one", "two"}},
		{"an informer repeats what it has", func() { p.handler(p.running["a"].key).OnUpdate(after, after) }, nil},
		{"it goes", func() { p.handler(p.running["a"].key).OnDelete(after) }, []string{"one", "two"}},
		{"one more is selected", func() { p.handler(p.running["app=web"].key).OnAdd(after, false) }, []string{"two"}},
		{"the old reference does not count", func() { p.handler(p.running["b"].key).OnUpdate(before, after) }, []string{"four", "three"}},
		{"nobody refers to it any more, and its last event comes late", func() {
			p.Refer(named("three"), nil, false)
			p.reconcile("four", "a")
			p.handler(ended.key).OnUpdate(before, after)
		}, nil},
	} {
		p.woken = nil
		row.act()
		if diff := cmp.Diff(row.want, p.woken); diff != "" {
			t.Errorf("%s: woken (-want +got):\n%s", row.reason, diff)
		}
	}
}
