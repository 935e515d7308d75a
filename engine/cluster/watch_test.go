package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/clustertest"
)

func TestAWatchReportsEachChangeOnce(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	made := apply(t, s, parse(t, s, widget))
	apply(t, s, parse(t, s, configMap))
	apply(t, s, parse(t, s, widget)) // says nothing new
	made.Object["status"] = map[string]any{"phase": "Ready"}
	made = s.Put("controller", made)
	set(t, made, int64(2), "spec", "size")
	made.SetFinalizers([]string{"example.com/held"})
	made = s.Put("somebody", made)
	remove(t, s, made)
	held := live(s, made)
	held.SetFinalizers(nil)
	s.Put("somebody", held)
	s.Remove(live(s, parse(t, s, configMap)))

	type state struct {
		Event              string
		Generation         int64
		Size, Phase        any
		Finalizers, Marked bool
	}
	var got []state
	version := map[string]bool{}
	for _, e := range s.Events() {
		got = append(got, state{
			e.String(), e.Object.GetGeneration(), field(e.Object, "spec", "size"), field(e.Object, "status", "phase"),
			len(e.Object.GetFinalizers()) > 0, e.Object.GetDeletionTimestamp() != nil,
		})
		if version[e.Object.GetResourceVersion()] {
			t.Errorf("%s has a version that another has", e)
		}
		version[e.Object.GetResourceVersion()] = true
	}
	w, c := "Widget "+s.Namespace+"/a", "ConfigMap "+s.Namespace+"/a"
	want := []state{
		{"create " + w, 1, int64(1), nil, false, false},
		{"create " + c, 0, nil, nil, false, false},
		{"update " + w, 1, int64(1), "Ready", false, false},
		{"update " + w, 2, int64(2), "Ready", true, false},
		{"update " + w, 3, int64(2), "Ready", true, true},
		{"delete " + w, 3, int64(2), "Ready", true, true}, // the last that was stored
		{"delete " + c, 0, nil, nil, false, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	expectEvents(t, s, "each is reported once")
}
