package evaluate_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/compile"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// A countingBackend notes the namespaces whose sessions are compiled, evaluated and confirmed.
type countingBackend struct {
	evaluate.Backend
	asked []string
}

func (b *countingBackend) Compile(ctx context.Context, s program.Session, pins template.Pins) (compile.Result, error) {
	b.asked = append(b.asked, "compile "+namespaceOf(s))
	return b.Backend.Compile(ctx, s, pins)
}

func (b *countingBackend) Evaluate(ctx context.Context, s program.Session) (program.Rollout, error) {
	b.asked = append(b.asked, "evaluate "+namespaceOf(s))
	return b.Backend.Evaluate(ctx, s)
}

func (b *countingBackend) Confirm(ctx context.Context, s program.Session, expected program.Rollout) (program.Rollout, bool, error) {
	b.asked = append(b.asked, "confirm "+namespaceOf(s))
	return b.Backend.Confirm(ctx, s, expected)
}

func namespaceOf(s program.Session) string {
	meta, _ := s.CR["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	return namespace
}

// A compilation of theirs would wait for the one worker that all suspects share, and no other session of
// the package is compiled meanwhile.
func TestTheSessionsOfSuspectsAreNotCompiled(t *testing.T) {
	t.Parallel()
	p := form{data: "data: a: cr.spec.name"}.load(t)
	b := &countingBackend{Backend: evaluate.InProcess(p)}
	suspects := map[string]bool{"mallory": true}
	e := evaluate.New(p, evaluate.Options{Backend: b, Suspect: func(namespace string) bool { return suspects[namespace] }})
	say := func(namespace string, i int64) {
		t.Helper()
		s := formSession(i, 1)
		s.CR["metadata"].(map[string]any)["namespace"] = namespace
		s.CR["spec"], s.Config = map[string]any{"name": namespace}, nil
		want, wantErr := p.Evaluate(s)
		got, err := e.Evaluate(s)
		if diff := cmp.Diff(want, got); diff != "" || err != nil || wantErr != nil {
			t.Errorf("errors %v and %v (-want +got):\n%s", wantErr, err, diff)
		}
	}
	say("mallory", 1)
	say("mallory", 2)
	say("town", 3)
	say("mallory", 4) // there is a template now
	want := []string{"evaluate mallory", "evaluate mallory", "compile town"}
	if diff := cmp.Diff(want, b.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
