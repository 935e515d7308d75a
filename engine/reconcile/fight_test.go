package reconcile_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/patch"
	"operetta.dev/test/machine"
)

// noted is a component that somebody may fight over, and one that waits for it.
const noted = `
components: note: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "note", data: {text: cr.spec.name, size: "\(cr.spec.size)"}}
components: other: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "other", data: size: "\(cr.spec.size)"}
`

// A fight is what was written in one minute.
type fight struct{ objects, statuses int }

// live lets minutes pass. After each step somebody may act, which wakes the resource;
// otherwise it comes again when it wants to. It returns what was written in each minute.
func (b *bench) live(minutes int, act func() bool) []fight {
	b.t.Helper()
	out := make([]fight, minutes)
	began := b.now
	for at := 0; at < minutes; at = int(b.now.Sub(began) / time.Minute) {
		before := len(b.memory.Changes())
		again, err := b.reconciler.Reconcile(b.t.Context(), shopKey, b.program)
		if err != nil {
			again = time.Second // as the queue does, at first
		}
		wrote := false
		for _, change := range b.memory.Changes()[before:] {
			if change.Ref.Kind == shopKind.Kind {
				out[at].statuses++
			} else {
				out[at].objects++
				wrote = true
			}
		}
		switch acts := act(); {
		case acts || wrote:
			b.now = b.now.Add(20 * time.Millisecond)
		case again > 0:
			b.now = b.now.Add(again)
		default:
			b.now = began.Add(time.Duration(minutes) * time.Minute)
		}
	}
	return out
}

// overwrite changes a ConfigMap as somebody else, unless it is as they want it.
func (b *bench) overwrite(name, key, value string) bool {
	b.t.Helper()
	u := b.find("ConfigMap", name)
	if u == nil || b.data(name, key) == value {
		return false
	}
	_ = unstructured.SetNestedField(u.Object, value, "data", key)
	if _, err := b.memory.Put("rival", u); err != nil {
		b.t.Fatal(err)
	}
	return true
}

// drop deletes an object as somebody else, if it is there.
func (b *bench) drop(kind, name string) bool {
	b.t.Helper()
	u := b.find(kind, name)
	if u == nil {
		return false
	}
	if err := b.memory.Delete(b.t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
		b.t.Fatal(err)
	}
	return true
}

func TestWhoeverFightsIsAnsweredInGrowingPauses(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	for name, row := range map[string]struct {
		body string
		act  func(b *bench) bool
		// want are the parts of what Ready says; none is that it is not about this.
		want []string
	}{
		"a field is changed": {
			noted, func(b *bench) bool { return b.overwrite("note", "text", "mine") },
			[]string{"ConfigMap default/note: data.text is changed by manager rival each time", "at least", "shop/body.cue:"},
		},
		"an object is deleted": {
			noted, func(b *bench) bool { return b.drop("ConfigMap", "note") },
			[]string{"ConfigMap default/note: it is deleted each time"},
		},
		"an object is rendered from itself": {
			`components: note: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "note", data: text: *"\(live.note.cm.data.text)x" | "x"}`,
			func(*bench) bool { return false },
			[]string{"ConfigMap default/note: data.text is rendered differently each time"},
		},
		"a component grows by itself": {
			`components: note: objects: {
	cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "note"}
	for k, _ in *live.note | {} {"\(k)x": {apiVersion: "v1", kind: "ConfigMap", metadata: name: "note\(k)"}}
}`,
			func(*bench) bool { return false },
			[]string{"another new object each time"},
		},
		"a component is switched on and off": {
			`inputs: there: {apiVersion: "v1", kind: "ConfigMap", name: "there"}
components: note: {when: inputs.there.object.data.n == "yes", objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "note"}}`,
			func(b *bench) bool {
				want := "yes"
				if b.find("ConfigMap", "note") != nil {
					want = "no"
				}
				if b.data("there", "n") == want {
					return false
				}
				b.put(settings("default", "there", map[string]any{"n": want}))
				return true
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, row.body)
			got := b.live(20, func() bool { return row.act(b) })
			t.Logf("objects and statuses written in each minute: %v", got)
			for i, f := range got {
				limit := fight{2, 8}
				if i == 0 {
					limit = fight{17, 24} // five corrections are at once, and it began
				}
				if i < 4 {
					limit.objects += 3
					limit.statuses += 15 // a minute of progress is told every three seconds
				}
				if f.objects > limit.objects || f.statuses > limit.statuses {
					t.Errorf("in minute %d there were %v writes of objects and statuses, more than %v", i, f, limit)
				}
			}
			if len(row.want) > 0 {
				b.expect("somebody fights", "False KeepsChanging", row.want...)
			}
		})
	}
}

func TestAStatusThatIsWipedAllTheTimeIsWrittenInPauses(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	b := newBench(t, noted)
	got := b.live(3, func() bool {
		if b.status()["inventory"] == nil {
			return false
		}
		b.wipe()
		return true
	})
	t.Logf("objects and statuses written in each minute: %v", got)
	if got[0].statuses > 150 || got[2].statuses > 20 {
		t.Errorf("the status was written too often: %v", got)
	}
}

func TestAFightEndsWhenTheOtherStops(t *testing.T) {
	t.Parallel()
	b := newBench(t, noted)
	b.live(1, func() bool { return b.overwrite("note", "text", "mine") })
	b.expect("somebody fights", "False KeepsChanging", "manager rival")
	if other := b.data("other", "size"); other != "1" {
		t.Errorf("the other component has not been written: %q", other)
	}
	b.live(2, func() bool { return false })
	b.expect("nobody fights any more", "True Ready")
	if text := b.data("note", "text"); text != "shop" {
		t.Errorf("the text is %q", text)
	}
	b.overwrite("note", "text", "mine")
	before := b.now
	b.live(1, func() bool { return b.data("note", "text") == "shop" && b.now.Sub(before) < 0 })
	if text := b.data("note", "text"); text != "shop" {
		t.Errorf("what is changed once is not corrected any more: %q", text)
	}
}

func TestAChangeByAPersonEndsAPauseAtOnce(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		change func(*testing.T, *bench)
		want   string
	}{
		"of the spec": {
			"whoever changes the resource waits for it",
			func(t *testing.T, b *bench) { t.Helper(); act(t, b.memory, map[string]any{"size": int64(2)}) }, "2 shop a",
		},
		"of a patch": {
			"so does whoever patches it",
			func(t *testing.T, b *bench) {
				t.Helper()
				putPatch(t, b.memory, "more", shopKey.Name, "note.cm", map[string]any{"data": map[string]any{"more": "b"}})
			}, "1 shop b",
		},
		"of nothing": {
			"the pause is for that",
			func(*testing.T, *bench) {}, "1 mine a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, noted)
			b.memory.Serve(patch.Kind.GroupKind(), cluster.Namespaced)
			b.reconciler.Patches = b.memory
			putPatch(t, b.memory, "more", shopKey.Name, "note.cm", map[string]any{"data": map[string]any{"more": "a"}})
			step := func() {
				t.Helper()
				if _, err := b.reconciler.Reconcile(t.Context(), shopKey, b.program); err != nil {
					t.Fatal(err)
				}
			}
			b.live(10, func() bool { return b.overwrite("note", "text", "mine") })
			step()
			b.overwrite("note", "text", "mine")
			step()
			if text := b.data("note", "text"); text != "mine" {
				t.Fatalf("the text is %q: there is no pause", text)
			}
			row.change(t, b)
			step()
			if got := b.data("note", "size") + " " + b.data("note", "text") + " " + b.data("note", "more"); got != row.want {
				t.Errorf("%s: the object says %q, want %q", row.reason, got, row.want)
			}
		})
	}
}

func TestASpecThatChangesAllTheTimeIsNoExcuse(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	b := newBench(t, noted)
	size := int64(1)
	got := b.live(3, func() bool {
		size++
		act(t, b.memory, map[string]any{"size": size})
		b.now = b.now.Add(180 * time.Millisecond)
		return true
	})
	t.Logf("objects and statuses written in each minute: %v", got)
	for i, f := range got {
		if f.objects > 40 || f.statuses > 140 {
			t.Errorf("in minute %d there were %v writes of objects and statuses", i, f)
		}
	}
}

// TestWhatIsUsualIsNotHeldUp is E4.
func TestWhatIsUsualIsNotHeldUp(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	b := newBench(t, `
import "strings"

_names: strings.Split(strings.Repeat("x,", 199), ",")
components: many: objects: {for i, _ in _names {"o\(i)": {apiVersion: "v1", kind: "ConfigMap", metadata: name: "many-\(i)", data: size: "\(cr.spec.size)"}}}
`)
	b.live(1, func() bool { return false })
	b.expect("a cold start", "True Ready")
	for i := range 4 {
		b.drop("ConfigMap", "many-7")
		b.overwrite("many-8", "size", "0")
		b.live(1, func() bool { return false })
		b.expect("now and then somebody makes a mistake", "True Ready")
		if b.data("many-7", "size") != "1" || b.data("many-8", "size") != "1" {
			t.Fatalf("it was not corrected for the %d. time", i)
		}
	}
}
