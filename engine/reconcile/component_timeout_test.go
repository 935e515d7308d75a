package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// neverApplied is a component that waits for what never comes, with a hook of each
// phase.
const neverApplied = `
components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}
components: later: {
	timeout: "5m"
	requires: big: cr.spec.size > 5
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "later"}
}
_note: {apiVersion: "v1", kind: "Secret", metadata: name: string}
hooks: {
	afterDeploy: a: objects: o: _note & {metadata: name: "deployed"}
	afterDeployUnsuccessful: b: objects: o: _note & {metadata: name: "not-deployed"}
	afterVerify: c: objects: o: _note & {metadata: name: "verified"}
	afterVerifyUnsuccessful: d: objects: o: _note & {metadata: name: "not-verified"}
}
`

// TestAComponentThatTimesOutBeforeItWasAppliedCouldNotBeVerified shows which hooks run
// for a component that has waited for too long: it is not one that could not be applied,
// as it goes on by itself when what it waits for comes.
func TestAComponentThatTimesOutBeforeItWasAppliedCouldNotBeVerified(t *testing.T) {
	t.Parallel()
	b := newBench(t, neverApplied)
	hooks := func(reason string, want ...string) {
		t.Helper()
		b.rest()
		var got []string
		for _, u := range objects(t, b.memory, "Secret") {
			name := u.GetName()
			got = append(got, name[:len(name)-9]) // without the digest
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: hooks (-want +got):\n%s", reason, diff)
		}
	}
	hooks("while it waits, nothing has succeeded and nothing has failed")
	b.now = b.now.Add(6 * time.Minute)
	hooks("the deploy phase has not failed, but it could not be verified in time", "not-verified")
	b.expect("it says so", "False TimedOut", "later: not ready within 5m0s: waiting for requires.big")
	act(t, b.memory, map[string]any{"size": int64(6)})
	hooks("what it waited for has come", "deployed", "not-verified", "verified")
	b.expect("and the hook of failure keeps nothing", "True Ready")
}
