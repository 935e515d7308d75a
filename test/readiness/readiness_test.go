package readiness_test

import (
	"strings"
	"testing"

	"operetta.dev/test/readiness"
)

func TestEachKindHasACaseOfEachStage(t *testing.T) {
	kinds, err := readiness.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		has := map[readiness.Stage]bool{}
		names := map[string]bool{}
		for _, c := range k.Cases {
			has[c.Stage] = true
			if names[c.Name] || c.Name == "" || c.Reason == "" {
				t.Errorf("%s: %q is there twice, or lacks a reason or a name", k.Title, c.Name)
			}
			names[c.Name] = true
			if (c.Message == "") != (c.Stage == readiness.Ready) {
				t.Errorf("%s %s: a message is for those that are not ready, and for all of them", k.Title, c.Name)
			}
		}
		wants := map[readiness.Stage]bool{
			readiness.Ready:  true,
			readiness.Failed: k.Failed != "",
			readiness.Stale:  strings.HasPrefix(k.Generation, "observed"),
		}
		for stage, want := range wants {
			if has[stage] != want {
				t.Errorf("%s: it has a case that is %s: %t, want %t", k.Title, stage, has[stage], want)
			}
		}
		if exists := strings.HasPrefix(k.Ready, "it exists"); !has[readiness.NotYet] && !exists {
			t.Errorf("%s: no case is not yet ready", k.Title)
		}
	}
}

func TestACaseChangesTheBaseOnlyForItself(t *testing.T) {
	k := readiness.Kind{Base: map[string]any{"spec": map[string]any{"a": "1", "b": "2"}}}
	got := k.Live(readiness.Case{Change: map[string]any{"spec": map[string]any{"a": nil, "c": "3"}}})
	spec := got.Object["spec"].(map[string]any)
	if len(spec) != 2 || spec["b"] != "2" || spec["c"] != "3" {
		t.Errorf("got %v", spec)
	}
	if len(k.Base["spec"].(map[string]any)) != 2 {
		t.Errorf("the base is %v now", k.Base)
	}
}
