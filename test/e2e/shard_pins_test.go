package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// pinnedFleet is a fleet of which some resources are pinned to the first revision of a Package, and the others are not.
type pinnedFleet struct {
	*fleet

	// first is the digest that the pins name.
	first         string
	pinned, other []*unstructured.Unstructured
}

// all are all resources.
func (f *pinnedFleet) all() []*unstructured.Unstructured { return slices.Concat(f.pinned, f.other) }

// edit changes the text of all resources.
func (f *pinnedFleet) edit(text string) {
	f.T.Helper()
	for _, cr := range f.all() {
		f.Patch(cr, harness.Spec(map[string]any{"text": text}))
	}
}

// expect waits until some resources have a text, and fails the test if one of them has another version than it is to have.
func (f *pinnedFleet) expect(of func(name string) bool, text, newest string) {
	f.T.Helper()
	for _, cr := range f.all() {
		if !of(cr.GetName()) {
			continue
		}
		note := "note-" + cr.GetName()
		f.ExpectData(note, "text", text)
		version := newest
		if slices.Contains(f.pinned, cr) {
			version = "a"
			f.ExpectObject(cr, "to say its revision", func(u *unstructured.Unstructured) error {
				if got := harness.Field(u, "status", "package", "digest"); got != f.first {
					return fmt.Errorf("it says %v", got)
				}
				return nil
			})
		}
		f.ExpectData(note, "version", version)
	}
}

// everyone is all resources.
func everyone(string) bool { return true }

// servedBy returns which resources a member of the fleet has written since a mark.
func (f *pinnedFleet) servedBy(from controlplane.AuditMark, member string) map[string]bool {
	f.T.Helper()
	out := map[string]bool{}
	for _, e := range f.writes(from) {
		if strings.HasSuffix(e.User, ":"+member) {
			out[e.Name[strings.LastIndex(e.Name, "-")+1:]] = true
		}
	}
	return out
}

// expectPinsOf fails the test if a member serves no pinned resource, or no other one.
func (f *pinnedFleet) expectPinsOf(member string, served map[string]bool) {
	f.T.Helper()
	is := func(cr *unstructured.Unstructured) bool { return served[cr.GetName()] }
	if !slices.ContainsFunc(f.pinned, is) || !slices.ContainsFunc(f.other, is) {
		f.T.Errorf("%s serves no pinned resource, or no other one: %v", member, served)
	}
}

// TestF35F39PinnedResourcesKeepTheirRevisionWhateverHappensToTheShards edits resources of two shards while the Package goes on, while the
// shard that decides about it is dead, when the other one starts without it, and when there are three of them.
func TestF35F39PinnedResourcesKeepTheirRevisionWhateverHappensToTheShards(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	f := &pinnedFleet{fleet: &fleet{env: s, args: []string{"--packages-from-cluster", "--package-selector", "test=" + s.Namespace}, users: map[string]bool{}}}
	p := s.NewPackageObject("objshardpins")
	apply := func(version string) {
		u := p.InlineBody(note(version))
		u.Object["spec"].(map[string]any)["revisionPins"] = "Allow"
		p.Apply(u)
	}
	from := harness.MarkAudit(t)
	zero, one := f.member("0of2", 0, 2), f.member("1of2", 1, 2)
	apply("a")
	f.first, _ = harness.Field(p.Expect("Ready", "True", "Served"), "status", "digest").(string)
	const each = 8 // of which no shard has none, but once in thousands of runs
	for i := range each {
		pinned := p.Thing(s.Env, fmt.Sprint("pinned", i), map[string]any{"text": "1"})
		pinned.SetAnnotations(map[string]string{"operetta.dev/revision-pin": f.first})
		f.pinned = append(f.pinned, s.Create(pinned))
		f.other = append(f.other, s.Create(p.Thing(s.Env, fmt.Sprint("other", i), map[string]any{"text": "1"})))
	}
	for _, cr := range f.all() {
		s.ExpectResourceReady(cr)
	}
	apply("b")
	f.edit("2")
	f.expect(everyone, "2", "b")
	f.expectOneWriter(from)
	left := f.servedBy(from, "1of2")
	f.expectPinsOf("0of2", f.servedBy(from, "0of2"))
	f.expectPinsOf("1of2", left)

	// Who decides is dead, while somebody wants another version: the other one serves the pins, and also when it has just begun.
	zero.Kill()
	apply("c")
	f.edit("3")
	f.expect(func(name string) bool { return left[name] }, "3", "b")
	f.expectOneWriter(from)
	one.Stop()
	one = f.member("1again", 1, 2)
	again := harness.MarkAudit(t)
	f.edit("4")
	f.expect(func(name string) bool { return left[name] }, "4", "b")
	if got := f.servedBy(again, "1again"); len(got) != len(left) {
		t.Errorf("the shard that has begun again serves %v, want %v", got, left)
	}
	f.expectOneWriter(again)

	// Three take over, in any order: those that are pinned stay, the others get what was decided meanwhile.
	one.Kill()
	from = harness.MarkAudit(t)
	for shard := range 3 {
		f.member(fmt.Sprint(2-shard, "of3"), 2-shard, 3)
	}
	f.edit("5")
	f.expect(everyone, "5", "c")
	if writers := f.expectOneWriter(from); len(writers) != 3 {
		t.Errorf("the writers are %v", writers)
	}
}
