package shadow

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/machine"
)

// perComparison is how many evaluations a comparison takes: one says which objects are read, and the next one has them.
const perComparison = 2

// inBubble runs a test with a clock that moves only while everybody waits, so that it counts what no machine changes.
func inBubble(t *testing.T, test func(p *plane)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane(t)
		defer func() {
			p.cancel()
			<-p.ended
		}()
		test(p)
	})
}

// fleet puts a number of resources with their objects, and returns the latter.
func (p *plane) fleet(size int, more map[string]any) []*unstructured.Unstructured {
	p.t.Helper()
	var out []*unstructured.Unstructured
	for i := range size {
		site, config := aSite(p.t, fmt.Sprintf("s%d", i), 1)
		data, _ := config.Object["data"].(map[string]any)
		maps.Copy(data, more)
		out = append(out, config)
		p.put(site)
		p.put(config)
	}
	return out
}

// pass moves the clock of the test.
func (p *plane) pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // it takes no time in a bubble of synctest

// settled waits until nothing is to be compared any more.
func (p *plane) settled() {
	p.t.Helper()
	<-p.shadow.ready
	for range 100 {
		p.pass(compareInterval)
		synctest.Wait()
		if _, busy := p.shadow.count(); !busy {
			return
		}
	}
	p.printed.mu.Lock()
	defer p.printed.mu.Unlock()
	p.t.Fatalf("something is always to be compared: %v, notes %q", p.printed.last, p.printed.notes)
}

// TestManyEventsCostFewComparisons changes each object of a fleet again and again.
func TestManyEventsCostFewComparisons(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason  string
		changes int
		every   time.Duration
		// most is how many comparisons of each resource there are at most.
		most int64
	}{
		"at once":        {"an operator writes several objects at once", 10, 0, 1},
		"all the time":   {"twenty seconds of ten events each", 200, 100 * time.Millisecond, 20/2 + 1},
		"now and then":   {"each is seen", 5, 10 * time.Second, 5},
		"just too often": {"what comes while it waits is seen with it", 10, compareInterval / 2, 10/2 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(p *plane) {
				t := p.t
				const size = 20
				configs := p.fleet(size, nil)
				p.start(sized, Options{Concurrency: 4})
				p.settled()
				if first := p.counted.n.Load(); first != perComparison*size {
					t.Errorf("%d evaluations at first for %d resources", first, size)
				}
				first := p.counted.n.Load()
				for n := range row.changes {
					for _, c := range configs {
						c.SetAnnotations(map[string]string{"n": fmt.Sprint(n)})
						p.put(c)
					}
					synctest.Wait() // a watch of the fake client panics if a hundred events wait
					p.pass(row.every)
				}
				p.settled()
				if n := p.counted.n.Load() - first; n > row.most*perComparison*size || n < perComparison*size {
					t.Errorf("%s: %d comparisons of %d resources", row.reason, n/perComparison, size)
				}
				if got := p.printed.said["s0"]; got != 1 {
					t.Errorf("what has not changed is said %d times", got)
				}
			})
		})
	}
}

// TestAFleetIsComparedOnceAndTakesLittleMemory: a shadow keeps what was read by name and version, and no objects. Not parallel:
// it looks at the heap of the process. What fleets do at once, TestManyEventsCostFewComparisons does with the race detector.
func TestAFleetIsComparedOnceAndTakesLittleMemory(t *testing.T) { //nolint:paralleltest // see above
	machine.Serial(t)
	const (
		size = 1000
		// most is what a resource with one object may take, which is less than the object has.
		most    = 12 << 10
		content = 20 << 10
	)
	inBubble(t, func(p *plane) {
		t := p.t
		p.fleet(size, map[string]any{"text": strings.Repeat("x", content)})
		before := heap()
		p.start(sized, Options{Concurrency: 4})
		p.settled()
		if n := p.counted.n.Load(); n != perComparison*size {
			t.Errorf("%d evaluations for %d resources", n, size)
		}
		if s, _ := p.shadow.count(); s.Same != size {
			t.Errorf("they compare as %s", s)
		}
		clear(p.printed.last) // the test's own
		kept := heap() - before
		t.Logf("%d bytes for each resource", kept/size)
		if kept > size*most {
			t.Errorf("a shadow of %d resources keeps %d bytes for each", size, kept/size)
		}
	})
}

// heap returns how many bytes are in use.
func heap() int64 {
	for range 2 { // the first one runs finalizers
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// many returns a package that renders a number of ConfigMaps.
func many(n int) string {
	out := &strings.Builder{}
	for i := range n {
		fmt.Fprintf(out, `components: web: objects: c%d: #CM & {metadata: name: "\(cr.metadata.name)-%d", data: {size: "\(cr.spec.size)"}}`+"\n", i, i)
	}
	return out.String()
}

// TestAResourceWithHundredsOfObjectsIsReadOnce: each object is read once for a comparison, whatever has changed.
func TestAResourceWithHundredsOfObjectsIsReadOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(p *plane) {
		t := p.t
		const objects = 300
		site, config := aSite(t, "a", 1)
		p.put(site)
		named := func(i int) *unstructured.Unstructured {
			out := config.DeepCopy()
			out.SetName(fmt.Sprintf("a-%d", i))
			out.SetUID("uid-of-" + config.GetUID())
			return out
		}
		for i := range objects {
			p.put(named(i))
		}
		p.start(many(objects), Options{})
		p.settled()
		if got := p.printed.last["a"]; got.State != Same {
			t.Fatalf("it is %v", got)
		}
		first := p.gets.Load()
		if first > objects+10 {
			t.Errorf("%d reads for %d objects", first, objects)
		}
		for i := range objects { // all events within the debounce
			c := named(i)
			c.Object["data"] = map[string]any{"size": "2"}
			p.put(c)
			synctest.Wait() // a watch of the fake client panics if a hundred events wait
		}
		evaluated := p.counted.n.Load()
		first = p.gets.Load()
		p.settled()
		got := p.printed.last["a"]
		if got.State != Different || len(got.Objects) != objects || got.fields() != objects {
			t.Errorf("%d objects with %d fields differ, and it is %s", len(got.Objects), got.fields(), got.State)
		}
		if n, gets := p.counted.n.Load()-evaluated, p.gets.Load()-first; n != perComparison || gets > objects+10 {
			t.Errorf("%d evaluations and %d reads for one comparison", n, gets)
		}
	})
}
