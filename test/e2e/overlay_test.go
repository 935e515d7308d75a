package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// overlay returns an Overlay for the Packages of the test.
func (s *env) overlay(name, text string) *unstructured.Unstructured {
	u := harness.Object("operetta.dev/v1alpha1", "Overlay", "", s.Namespace+"-"+name)
	u.Object["spec"] = map[string]any{
		"packageSelector": map[string]any{"matchLabels": map[string]any{"test": s.Namespace}},
		"files":           map[string]any{"overlay.cue": "package overlay\n\n" + text},
	}
	return u
}

func TestAnOverlayHoldsForEachPackageAndContradictionsAreSaid(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("overlaid")
	p.Apply(p.InlineBody(note("a")))
	p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "b"}))
	s.ExpectResourceReady(cr)

	s.Create(s.overlay("team", `components: [string]: objects: [string]: metadata: labels: team: "search"`+"\n"))
	labelled := func(value string) func(*unstructured.Unstructured) error {
		return func(u *unstructured.Unstructured) error {
			if u.GetLabels()["team"] != value {
				return harness.ErrNotYet
			}
			return nil
		}
	}
	s.ExpectObject(s.Ref("ConfigMap", "note-shop"), "to have the label", labelled("search"))
	p.Expect("Ready", "True", "Served")

	other := s.Create(s.overlay("other", `components: [string]: objects: [string]: metadata: labels: team: "ads"`+"\n"))
	p.Expect("Ready", "False", "PackageBroken", "Overlay/"+s.Namespace+"-other/overlay.cue:3", `conflicting values`, "used at Overlay/"+s.Namespace+"-team/overlay.cue:3")
	s.ExpectObject(s.Ref("ConfigMap", "note-shop"), "to keep the label", labelled("search"))

	// After a restart, what was accepted last goes on, and the contradiction is still said.
	o.Stop()
	s.StartPackageOperator()
	s.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	s.ExpectData("note-shop", "text", "c")
	s.ExpectObject(s.Ref("ConfigMap", "note-shop"), "to keep the label", labelled("search"))
	p.Expect("Ready", "False", "PackageBroken", "Overlay/"+s.Namespace+"-other/overlay.cue:3")

	s.Delete(other)
	p.Expect("Ready", "True", "Served")
	s.Delete(s.overlay("team", ""))
	s.ExpectObject(s.Ref("ConfigMap", "note-shop"), "to have no label any more", labelled(""))
	s.ExpectResourceReady(cr)
}
