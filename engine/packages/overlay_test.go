package packages

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/status"
)

// someOverlays are the Overlays of a cluster.
type someOverlays struct {
	all map[string]*unstructured.Unstructured
	err error
}

// List implements Overlays.
func (o *someOverlays) List(context.Context, string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, u := range o.all {
		out = append(out, u)
	}
	return out, o.err
}

// Forget implements Overlays.
func (o *someOverlays) Forget(string) {}

// put writes an Overlay.
func (o *someOverlays) put(name string, spec map[string]any) {
	generation := int64(1)
	if was := o.all[name]; was != nil {
		generation += was.GetGeneration()
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetName(name)
	u.SetGeneration(generation)
	o.all[name] = u
}

// labelling is the spec of an Overlay that demands the same label of every object.
func labelling(value string) map[string]any {
	return map[string]any{"files": map[string]any{"labels.cue": "package o\n\ncomponents: [string]: objects: [string]: metadata: labels: team: \"" + value + "\"\n"}}
}

func TestWhatOverlaysDoToAPackage(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		// edits are made one after the other, with what comes of each.
		edits []func(*site, *someOverlays)
		ready []string
		// says is part of the last message.
		says  string
		calls [][]string
	}{
		"one comes, changes, and goes": {
			"each is another content of the Package, and the last is the first", []func(*site, *someOverlays){
				func(_ *site, o *someOverlays) { o.put("team", labelling("a")) },
				func(_ *site, o *someOverlays) { o.put("team", labelling("b")) },
				func(*site, *someOverlays) {},
				func(_ *site, o *someOverlays) { delete(o.all, "team") },
			},
			[]string{"True Served", "True Served", "True Served", "True Served"}, "",
			[][]string{{"install", "swap Thing"}, {"install", "swap Thing"}, nil, {"install", "swap Thing"}},
		},
		"two that contradict each other": {
			"what was accepted goes on", []func(*site, *someOverlays){
				func(_ *site, o *someOverlays) { o.put("team", labelling("a")); o.put("other", labelling("b")) },
				func(_ *site, o *someOverlays) { delete(o.all, "other") },
			},
			[]string{"False PackageBroken", "True Served"}, "",
			[][]string{{"outdated: Overlay/other/labels.cue:3, used at Overlay/team/labels.cue:3: components.note.objects.note.metadata.labels.team" + sayswhy}, {"install", "swap Thing"}},
		},
		"one that adds an object": {
			"each Package would have it", []func(*site, *someOverlays){
				func(_ *site, o *someOverlays) {
					o.put("adds", map[string]any{"files": map[string]any{"a.cue": "package o\n\ncomponents: more: {}\n"}})
				},
			},
			[]string{"False PackageBroken"}, "Overlay/adds/a.cue:3: overlay: this would add a component",
			[][]string{{"outdated: Overlay/adds/a.cue:3" + sayswhy}},
		},
		"one for others": {
			"its selector is about other labels", []func(*site, *someOverlays){
				func(_ *site, o *someOverlays) {
					spec := labelling("a")
					spec["packageSelector"] = map[string]any{"matchLabels": map[string]any{"for": "others"}}
					o.put("team", spec)
				},
				func(s *site, _ *someOverlays) {
					u := s.get("p")
					u.SetLabels(map[string]string{"for": "others"})
					if _, err := s.memory.Put("kubectl", u); err != nil {
						s.t.Fatal(err)
					}
				},
			},
			[]string{"True Served", "True Served"}, "",
			[][]string{nil, {"install", "swap Thing"}},
		},
		"a selector that is none": {
			"nobody knows for whom it holds, so it holds up all", []func(*site, *someOverlays){
				func(_ *site, o *someOverlays) {
					spec := labelling("a")
					spec["packageSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Like"}}}
					o.put("team", spec)
				},
			},
			[]string{"False PackageBroken"}, `overlay: Overlay/team: spec.packageSelector: "Like" is not a valid`,
			[][]string{{"outdated: PackageBroken" + sayswhy}},
		},
		"files that are none": {
			"it is misspelled", []func(*site, *someOverlays){
				func(_ *site, o *someOverlays) {
					o.put("none", map[string]any{"files": map[string]any{"README.md": "text"}})
				},
				func(_ *site, o *someOverlays) {
					o.put("none", map[string]any{"files": map[string]any{"../a.cue": "package o"}})
				},
			},
			[]string{"False PackageBroken", "False PackageBroken"}, `overlay: Overlay/none: "../a.cue" is not the name of a file`,
			[][]string{{"outdated: PackageBroken" + sayswhy}, nil},
		},
		"one that is being deleted": {
			"it is not demanded any more", []func(*site, *someOverlays){
				func(_ *site, o *someOverlays) {
					o.put("team", labelling("a"))
					o.all["team"].Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-11-23T00:00:00Z"
				},
			},
			[]string{"True Served"}, "",
			[][]string{nil},
		},
		"overlays that cannot be read": {
			"a demand may be among them", []func(*site, *someOverlays){
				func(_ *site, o *someOverlays) {
					o.err = &cluster.KindUnreadableError{Kind: OverlayKind, Cause: errors.New("forbidden")}
				},
				func(_ *site, o *someOverlays) { o.err = nil },
			},
			[]string{"False SourceUnreadable", "True Served"}, "",
			[][]string{{"outdated: SourceUnreadable" + sayswhy}, {"outdated: "}},
		},
		"a restart while two contradict each other": {
			"what was accepted last serves", []func(*site, *someOverlays){
				func(_ *site, o *someOverlays) { o.put("team", labelling("a")) },
				func(s *site, o *someOverlays) { o.put("other", labelling("b")); s.restart(); s.Overlays = o },
			},
			[]string{"True Served", "False PackageBroken"}, "",
			[][]string{{"install", "swap Thing"}, {"install", "serve Thing outdated: Overlay/other/labels.cue:3, used at Overlay/team/labels.cue:3: components.note.objects.note.metadata.labels.team" + sayswhy}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := newSite(t), &someOverlays{all: map[string]*unstructured.Unstructured{}}
			s.Overlays = o
			s.apply("p", text("Thing", "a"))
			if err := s.step("p"); err != nil {
				t.Fatal(err)
			}
			s.take()
			for i, edit := range row.edits {
				edit(s, o)
				if err := s.step("p"); err != nil {
					t.Fatal(err)
				}
				if got := s.ready("p"); got != row.ready[i] {
					t.Errorf("%s: after edit %d it is %s, want %s: %v", row.reason, i, got, row.ready[i], s.get("p").Object["status"])
				}
				if diff := cmp.Diff(row.calls[i], s.take()); diff != "" {
					t.Errorf("%s: calls after edit %d (-want +got):\n%s", row.reason, i, diff)
				}
			}
			conditions, _, _ := unstructured.NestedMap(s.get("p").Object, "status")
			if c := status.Condition(conditions, status.ConditionReady); c == nil || !strings.Contains(c.Message, row.says) {
				t.Errorf("%s: it says %+v, want %q", row.reason, c, row.says)
			}
		})
	}
}

// TestARevisionHasItsOverlays asserts that a revision with an Overlay is one that can be read again.
func TestARevisionHasItsOverlays(t *testing.T) {
	t.Parallel()
	s, o := newSite(t), &someOverlays{all: map[string]*unstructured.Unstructured{}}
	s.Overlays = o
	o.put("team", labelling("a"))
	s.apply("p", text("Thing", "a"))
	if err := s.step("p"); err != nil {
		t.Fatal(err)
	}
	all, err := s.memory.ListLive(t.Context(), cluster.Selection{Kind: RevisionKind})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d revisions, %v", len(all), err)
	}
	kept, err := parseRevision(Package{Name: "p", object: s.get("p")}, all[0])
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, text := range kept.snapshot.Texts() {
		found = found || strings.Contains(text, `team: "a"`)
	}
	if !found {
		t.Errorf("the revision has no overlay: %v", kept.snapshot.Texts())
	}
}
