package attack

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"operetta.dev/test/harness"
)

// mebibyte is about as much as an object can have.
const mebibyte = 1 << 20

// heapOf returns how many MiB of an operator's heap are in use.
func heapOf(t *testing.T, o *harness.Operator) int {
	t.Helper()
	found := regexp.MustCompile(`(?m)^go_memstats_heap_alloc_bytes (\S+)$`).FindStringSubmatch(o.Metrics())
	bytes, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(bytes) / mebibyte
}

// TestAttackLabelledObjectsDoNotFillTheMemory is attack 5b: 450 ConfigMaps of 1 MB with just
// the label ended an operator of 512 MiB, 20 seconds after each start.
func TestAttackLabelledObjectsDoNotFillTheMemory(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "filled", helloBody)
	o := s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	far := s.OtherNamespace()
	bob := s.Tenant("bob", s.Namespace, things(p))
	w1 := bob.Create(p.Thing(s, "w1", nil))
	s.ExpectResourceReady(w1)
	carol, dave := s.Tenant("carol", far, configMaps()), s.Tenant("dave", s.Namespace, configMaps())
	before := heapOf(t, o)
	const each = 75
	owner := fmt.Sprintf("Thing.%s.example.com %s/w1", p.Name, s.Namespace)
	blob := map[string]any{"blob": strings.Repeat("x", mebibyte-4096)}
	for i := range each {
		far := objectWithForgedOwner(far, fmt.Sprintf("far-%d", i), owner)
		beside := objectWithForgedOwner(s.Namespace, fmt.Sprintf("beside-%d", i), owner)
		far.Object["data"], beside.Object["data"] = blob, blob
		carol.Create(far)
		dave.Create(beside)
	}
	harness.Eventually(t, "the heap to stay small", func() error {
		if now := heapOf(t, o); now > before+80 {
			return fmt.Errorf("it was %d MiB, and is %d MiB after %d objects of 1 MiB", before, now, 2*each)
		}
		return nil
	})
	began := heapOf(t, o)
	o.Stop()
	o = s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	if err := bob.Patch(w1, harness.Spec(map[string]any{"text": "again"})); err != nil {
		t.Fatal(err)
	}
	s.ExpectData("w1", "text", "again")
	harness.Eventually(t, "the heap to stay small after a restart", func() error {
		if now := heapOf(t, o); now > before+80 {
			return fmt.Errorf("it was %d MiB, and is %d MiB after %d objects of 1 MiB", before, now, 2*each)
		}
		return nil
	})
	t.Logf("the heap was %d MiB, is %d MiB with %d objects of 1 MiB, and %d MiB after a restart", before, began, 2*each, heapOf(t, o))
}

// sizablePackage is a package that renders a large object.
const sizablePackage = `package NAME

import "strings"

#Spec: text: string | *"hello"

components: greeting: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: {text: cr.spec.text, blob: strings.Repeat("x", 100000)}
}
`

// TestALargeResourceIsServedAsASmallOne shows that what the caches leave out is not missed.
func TestALargeResourceIsServedAsASmallOne(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "sizable", "")
	harness.WriteFile(t, filepath.Join(p.Dir, "body.cue"), strings.ReplaceAll(sizablePackage, "NAME", p.Name))
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	alice := s.Tenant("alice", s.Namespace, things(p))
	cr := p.Thing(s, "large", map[string]any{"text": "a"})
	cr.SetAnnotations(map[string]string{"example.com/large": strings.Repeat("y", 100<<10)})
	from := harness.MarkAudit(t)
	alice.Create(cr)
	s.ExpectResourceReady(cr)
	s.ExpectData("large", "text", "a")
	s.WaitUntilIdle()
	t.Logf("requests: %s", s.OperatorRequests(from))
	if err := alice.Patch(cr, harness.Spec(map[string]any{"text": "b"})); err != nil {
		t.Fatal(err)
	}
	s.ExpectData("large", "text", "b")
	s.Patch(s.Ref("ConfigMap", "large"), map[string]any{"data": map[string]any{"text": "drift"}})
	s.ExpectData("large", "text", "b")
	s.ExpectResourceReady(cr)
	s.WaitUntilIdle() // and not a read for each look
	s.Delete(cr)
	s.ExpectGone(cr)
}
