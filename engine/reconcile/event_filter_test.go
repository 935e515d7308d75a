package reconcile_test

import (
	"testing"

	"operetta.dev/engine/reconcile"
	"operetta.dev/test/inline"
)

func TestWhichChangesOfAResourceAreActedUpon(t *testing.T) {
	t.Parallel()
	const before = "{metadata: {uid: a, generation: 1, finalizers: [operetta.dev/teardown, example.com/x]}, status: {phase: Ready}}"
	for name, row := range map[string]struct {
		reason, after string
		want          bool
	}{
		"nothing":                 {"there is nothing to do", before, false},
		"the engine's finalizer":  {"its objects would stay if it was deleted now", "{metadata: {uid: a, generation: 1, finalizers: [example.com/x]}, status: {phase: Ready}}", true},
		"all finalizers":          {"a client that replaces it has none", "{metadata: {uid: a, generation: 1}, status: {phase: Ready}}", true},
		"the finalizer of others": {"the engine has no part in it", "{metadata: {uid: a, generation: 1, finalizers: [operetta.dev/teardown]}, status: {phase: Ready}}", false},
		"the status":              {"the engine writes it", "{metadata: {uid: a, generation: 1, finalizers: [operetta.dev/teardown, example.com/x]}, status: {phase: Failed}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := reconcile.SpecOrMetadataChanged(inline.Object(t, before), inline.Object(t, row.after)); got != row.want {
				t.Errorf("%s: it is acted upon: %v", row.reason, got)
			}
		})
	}
}
