package watch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/history"
	"operetta.dev/test/inline"
)

// kept returns an object as a cache keeps it.
func kept(t testing.TB, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	out, err := stripObject(u)
	if err != nil {
		t.Fatal(err)
	}
	return packed(out.(*unstructured.Unstructured))
}

// saying writes changes as manager: fields.
func saying(all []history.Change) []string {
	var out []string
	for _, c := range all {
		said := c.Manager + ": " + strings.Join(c.Fields, ", ")
		if c.More > 0 {
			said += fmt.Sprintf(" and %d more", c.More)
		}
		out = append(out, said)
	}
	return out
}

// managed returns the entry of a manager that has written at a second, and owns some fields.
func managed(manager, operation string, second int, fields string) string {
	return fmt.Sprintf(`{manager: %s, operation: %s, apiVersion: v1, fieldsType: FieldsV1, time: "2026-01-01T00:00:%02dZ", fieldsV1: %s}`, manager, operation, second, fields)
}

// owned returns an object that belongs to a resource.
func owned(t testing.TB, kind, managers, rest string) *unstructured.Unstructured {
	t.Helper()
	return inline.Object(t, `{apiVersion: v1, kind: `+kind+`, metadata: {name: x, namespace: a, annotations: {operetta.dev/owner: Shop.example.com a/shop}, managedFields: [`+managers+`]}, `+rest+`}`)
}

func TestAChangeHasItsFieldsAndTheManagerOfEach(t *testing.T) {
	t.Parallel()
	const spec, status, data = `{"f:spec": {"f:replicas": {}}}`, `{"f:status": {"f:ready": {}}}`, `{"f:data": {"f:a": {}}}`
	many := func(text string) string {
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, "k%02d: %s, ", i, text)
		}
		return "data: {" + b.String() + "}"
	}
	for name, row := range map[string]struct {
		reason, kind   string
		before, after  string
		managers, then string
		want           []string
	}{
		"one manager": {
			"its entry has another time", "Thing", "spec: {replicas: 1}", "spec: {replicas: 2}",
			managed("operetta", "Apply", 1, spec), managed("scaler", "Update", 2, spec), []string{"scaler: spec.replicas"},
		},
		"two managers": {
			"each has its own fields", "Thing", "spec: {replicas: 1}, status: {ready: 1}", "spec: {replicas: 2}, status: {ready: 2}",
			managed("a", "Update", 1, spec) + "," + managed("b", "Update", 1, status), managed("a", "Update", 2, spec) + "," + managed("b", "Update", 3, status),
			[]string{"a: spec.replicas", "b: status.ready"},
		},
		"within a second": {
			"the entries have not changed, and the owner of the field is known", "Thing", "spec: {replicas: 1}, status: {ready: 1}", "spec: {replicas: 1}, status: {ready: 2}",
			managed("a", "Update", 1, spec) + "," + managed("b", "Update", 1, status), managed("a", "Update", 2, spec) + "," + managed("b", "Update", 1, status),
			[]string{"b: status.ready"},
		},
		"what another has taken over within a second": {
			"of the map, the one before has only the dot that is left", "Thing", "spec: {replicas: 1}", "spec: {replicas: 2}",
			managed("a", "Update", 1, `{"f:spec": {".": {}, "f:replicas": {}}}`),
			managed("a", "Update", 1, `{"f:spec": {}}`) + "," + managed("b", "Update", 1, spec), []string{"b: spec.replicas"},
		},
		"a field that is gone": {
			"nobody owns it: who has written has removed it", "ConfigMap", "data: {a: x, b: y}", "data: {a: x}",
			managed("operetta", "Apply", 1, data), managed("operetta", "Apply", 1, data) + "," + managed("thief", "Update", 2, `{"f:metadata": {}}`),
			[]string{"thief: data.b"},
		},
		"a field of nobody": {
			"what is there and owned by nobody was not written by whoever else has written", "Thing", "spec: {replicas: 1}", "spec: {replicas: 2}",
			managed("operetta", "Apply", 1, data), managed("operetta", "Apply", 2, data), []string{": spec.replicas"},
		},
		"a Secret": {
			"its keys are masked", "Secret", "data: {hunter2: eA==}", "data: {hunter3: eQ==}",
			managed("a", "Update", 1, `{"f:data": {"f:hunter2": {}}}`), managed("a", "Update", 2, `{"f:data": {"f:hunter3": {}}}`), []string{`a: data["***"], data["***"]`},
		},
		"a forged name": {
			"a terminal would act on it", "Thing", "spec: {replicas: 1}", "spec: {replicas: 2}",
			managed("a", "Update", 1, spec), managed(`"evil\e[2J\r\n\u202e"`, "Update", 2, spec), []string{`evil\x1b[2J\r\n\u202e: spec.replicas`},
		},
		"a forged key": {
			"the same", "Thing", "spec: {}", `spec: {"\e[2J\n": 1}`,
			managed("a", "Update", 1, `{"f:spec": {}}`), managed("a", "Update", 2, `{"f:spec": {}}`), []string{`a: spec["\x1b[2J\n"]`},
		},
		"many fields": {
			"the first of them are known", "ConfigMap", many("x"), many("y"), managed("a", "Update", 1, `{"f:data": {}}`), managed("a", "Update", 2, `{"f:data": {}}`),
			[]string{"a: data.k00, data.k01, data.k02, data.k03, data.k04, data.k05, data.k06, data.k07 and 92 more"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := history.Event{
				Trigger: history.Trigger{Cause: history.Object},
				Before:  kept(t, owned(t, row.kind, row.managers, row.before)), After: kept(t, owned(t, row.kind, row.then, row.after)),
			}
			if diff := cmp.Diff(row.want, saying(changes(e))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestACreationHasItsManager(t *testing.T) {
	t.Parallel()
	u := kept(t, owned(t, "Thing", managed("first", "Update", 1, `{"f:spec": {}}`)+","+managed("second", "Update", 2, `{"f:spec": {}}`), "spec: {}"))
	got := saying(changes(history.Event{Trigger: history.Trigger{Cause: history.Object}, After: u}))
	if diff := cmp.Diff([]string{"second: "}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheStatusOfAResourceTriggersNothing(t *testing.T) {
	t.Parallel()
	before := owned(t, "Thing", managed("a", "Update", 1, `{"f:spec": {"f:replicas": {}}}`), "spec: {replicas: 1}, status: {phase: Ready}")
	after := owned(t, "Thing", managed("a", "Update", 2, `{"f:spec": {"f:replicas": {}}}`), "spec: {replicas: 2}, status: {phase: Scaling}")
	got := saying(changes(history.Event{Trigger: history.Trigger{Cause: history.Resource}, Before: before, After: after}))
	if diff := cmp.Diff([]string{"a: spec.replicas"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfAnObjectThatACacheHasInPartNoChangesAreKnown(t *testing.T) {
	t.Parallel()
	large := func(text string) *unstructured.Unstructured {
		return kept(t, owned(t, "ConfigMap", managed("a", "Update", 1, `{"f:data": {}}`), "data: {a: "+strings.Repeat(text, maxCachedSize)+"}"))
	}
	small := kept(t, owned(t, "ConfigMap", managed("a", "Update", 1, `{"f:data": {}}`), "data: {a: b}"))
	for name, e := range map[string]history.Event{
		"both": {Before: large("x"), After: large("y")}, "before": {Before: large("x"), After: small}, "after": {Before: small, After: large("x")}, "created": {After: large("x")},
	} {
		if got := changes(e); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if w := memoryOf(large("x")); w > 4<<10 {
		t.Errorf("what a cache keeps of a large object weighs %d bytes", w)
	}
}

// BenchmarkChanges is what the comparison of a Deployment costs whose status has changed. Each reconcile makes one for each
// object that has triggered it.
func BenchmarkChanges(b *testing.B) {
	before, after := inline.Object(b, written), inline.Object(b, written)
	if err := unstructured.SetNestedField(after.Object, int64(2), "status", "replicas"); err != nil {
		b.Fatal(err)
	}
	e := history.Event{Trigger: history.Trigger{Cause: history.Object}, Before: kept(b, before), After: kept(b, after)}
	b.ReportAllocs()
	for b.Loop() {
		if len(changes(e)) != 1 {
			b.Fatal("it finds nothing")
		}
	}
}

// changes returns what a history is told of an event.
func changes(e history.Event) []history.Change { return newUnpackedObjects().changes(e) }

func TestAHistoryAndTheReconcileThatFollowsUnpackAnObjectOnce(t *testing.T) {
	t.Parallel()
	c := &Caches{large: newLargeObjects(), shared: Shared{unpacked: newUnpackedObjects()}}
	version := func(number string) *unstructured.Unstructured {
		u := inline.Object(t, written)
		u.SetResourceVersion(number)
		return packed(u)
	}
	history := func(e history.Event) { c.shared.History().Changes(e) }
	reconcile := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		out, err := c.readFull(t.Context(), u, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first, second := version("7"), version("8")
	before := c.shared.unpacked.last.get(cluster.RefOf(first))
	history(historyEvent(nil, first))
	known := c.shared.unpacked.last.get(cluster.RefOf(first))
	if before != nil || known == nil || reconcile(first) != known {
		t.Error("the reconcile has unpacked again what the history has read")
	}
	history(historyEvent(first, second))
	if known := c.shared.unpacked.last.get(cluster.RefOf(first)); known == nil || known.GetResourceVersion() != "8" || reconcile(second) != known {
		t.Error("what the object was has taken the place of what it is")
	}
}

func historyEvent(before, after *unstructured.Unstructured) history.Event {
	return history.Event{Trigger: history.Trigger{Cause: history.Object}, Before: before, After: after}
}
