package evaluate_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
)

const memoPackage = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "example.com"
kind:  "Shop"
versions: v1: spec: size: int | *1
cr: spec: versions.v1.spec
live: _
inputs: theme: {apiVersion: "v1", kind: "ConfigMap", name: "theme"}
status: {
	size:  cr.spec.size
	ready: *live.web.deployment.status.readyReplicas | 0
	theme: *inputs.theme.object.data.theme | "none"
}
`

// memoSession is what one row of TestAMemoGoesByWhatThePackageSees evaluates.
type memoSession struct {
	uid, version string
	size, ready  int64
	unread       string // a field of the live object that the package does not refer to
	kind         string // the kind of the live object
	inputs       map[string]program.FoundInput
}

func (s memoSession) session() program.Session {
	return program.Session{
		CR: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Shop",
			"metadata": map[string]any{"name": "s", "uid": s.uid, "resourceVersion": s.version},
			"spec":     map[string]any{"size": s.size},
		},
		Live: map[string]map[string]map[string]any{"web": {"deployment": {
			"kind":     s.kind,
			"metadata": map[string]any{"uid": "d", "resourceVersion": s.version},
			"status":   map[string]any{"readyReplicas": s.ready, "conditions": []any{s.unread}},
		}}},
		Inputs: s.inputs,
	}
}

func TestAMemoGoesByWhatThePackageSees(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, memoPackage)
	theme := func(text, version string) map[string]program.FoundInput {
		return map[string]program.FoundInput{"theme": {Objects: []map[string]any{{
			"kind": "ConfigMap", "metadata": map[string]any{"name": "theme", "resourceVersion": version}, "data": map[string]any{"theme": text, "other": version},
		}}}}
	}
	shown := func(size, ready int64, theme string) map[string]any {
		return map[string]any{"size": size, "ready": ready, "theme": theme}
	}
	memo := evaluate.New(p, evaluate.Options{Templates: evaluate.TemplatesOff, Resources: 2})
	last := map[string]map[string]any{}
	rows := []struct {
		reason     string
		session    memoSession
		remembered bool
		want       map[string]any
	}{
		{"it is evaluated first", memoSession{uid: "a", size: 1, version: "1", ready: 1}, false, shown(1, 1, "none")},
		{"neither a version nor a field that nothing refers to counts", memoSession{uid: "a", size: 1, version: "2", ready: 1, unread: "x"}, true, shown(1, 1, "none")},
		{"inputs that were not found are none", memoSession{uid: "a", size: 1, version: "2", ready: 1, inputs: map[string]program.FoundInput{"theme": {}}}, true, shown(1, 1, "none")},
		{"a field of the live object changed, and not its version", memoSession{uid: "a", size: 1, version: "2", ready: 9}, false, shown(1, 9, "none")},
		{"the spec changed", memoSession{uid: "a", size: 2, version: "2", ready: 9}, false, shown(2, 9, "none")},
		{"another resource has its own", memoSession{uid: "b", size: 2, version: "2", ready: 9}, false, shown(2, 9, "none")},
		{"and the first is not forgotten", memoSession{uid: "a", size: 2, version: "3", ready: 9}, true, shown(2, 9, "none")},
		{"an input was found", memoSession{uid: "a", size: 2, ready: 9, inputs: theme("dark", "1")}, false, shown(2, 9, "dark")},
		{"what it has besides is not read", memoSession{uid: "a", size: 2, ready: 9, inputs: theme("dark", "2")}, true, shown(2, 9, "dark")},
		{"its value changed", memoSession{uid: "a", size: 2, ready: 9, inputs: theme("light", "2")}, false, shown(2, 9, "light")},
		{"messages hide what a Secret holds, so it counts whether there is one", memoSession{uid: "a", size: 2, ready: 9, kind: "Secret", inputs: theme("light", "2")}, false, shown(2, 9, "light")},
	}
	for _, row := range rows {
		r, err := memo.Evaluate(row.session.session())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(row.want, r.Status); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.reason, diff)
		}
		same := reflect.ValueOf(r.Status).Pointer() == reflect.ValueOf(last[row.session.uid]).Pointer()
		if same != row.remembered {
			t.Errorf("%s: the answer was remembered: %v, want %v", row.reason, same, row.remembered)
		}
		last[row.session.uid] = r.Status
	}
}
