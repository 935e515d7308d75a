package e2e

import (
	"fmt"
	"testing"

	"operetta.dev/test/harness"
)

func TestF35APinnedResourceStaysAtItsRevisionAsLongAsThePackageAllowsIt(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("objpins")
	apply := func(version, pins string) {
		u := p.InlineBody(note(version))
		u.Object["spec"].(map[string]any)["revisionPins"] = pins
		p.Apply(u)
	}
	apply("a", "Allow")
	first, _ := harness.Field(p.Expect("Ready", "True", "Served"), "status", "digest").(string)
	pinned, other := p.Thing(s.Env, "pinned", map[string]any{}), p.Thing(s.Env, "other", map[string]any{})
	pinned.SetAnnotations(map[string]string{"operetta.dev/revision-pin": first})
	pinned.Object["spec"] = map[string]any{"text": "1"}
	s.ExpectResourceReady(s.Create(pinned.DeepCopy()))
	s.ExpectResourceReady(s.Create(other.DeepCopy()))

	apply("b", "Allow")
	s.ExpectData("note-other", "version", "b")
	for i, restart := range []bool{false, true} {
		if restart {
			o.Stop()
			o = s.StartPackageOperator()
		}
		text := fmt.Sprint("edit ", i)
		s.Patch(pinned, harness.Spec(map[string]any{"text": text}))
		s.ExpectData("note-pinned", "text", text) // it is reconciled
		s.ExpectData("note-pinned", "version", "a")
	}

	// A revision that nobody keeps changes nothing, and the resource says so.
	s.Patch(pinned, harness.Annotation("operetta.dev/revision-pin", "sha256:unknown"))
	s.Patch(pinned, harness.Spec(map[string]any{"text": "never"}))
	s.ExpectNotReady(pinned, "RevisionUnusable", "no revision that is kept")
	s.ExpectData("note-pinned", "text", "edit 1")

	s.Patch(pinned, harness.Annotation("operetta.dev/revision-pin", first))
	s.ExpectData("note-pinned", "text", "never")
	s.ExpectData("note-pinned", "version", "a")
	s.ExpectResourceReady(pinned)

	apply("b", "Refuse")
	s.ExpectData("note-pinned", "version", "b")
	s.ExpectResourceReady(pinned)
}
