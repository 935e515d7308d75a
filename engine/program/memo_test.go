package program_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

const memoPackage = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "example.com"
kind:  "Shop"
versions: v1: spec: size: int | *1
cr: spec: versions.v1.spec
live: _
status: {
	size:  cr.spec.size
	ready: *live.web.deployment.status.readyReplicas | 0
}
`

func TestAMemoForgetsWhatChanged(t *testing.T) {
	t.Parallel()
	snapshot, err := source.New(fstest.MapFS{"shop/shop.cue": &fstest.MapFile{Data: []byte(memoPackage)}}, "shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	memo := program.NewMemo(p, 2)
	session := func(uid string, size int64, version string, ready int64) program.Session {
		return program.Session{
			CR: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Shop",
				"metadata": map[string]any{"name": "s", "uid": uid, "resourceVersion": "changes all the time"},
				"spec":     map[string]any{"size": size},
			},
			Live: map[string]map[string]map[string]any{"web": {"deployment": {
				"metadata": map[string]any{"uid": "d", "resourceVersion": version},
				"status":   map[string]any{"readyReplicas": ready},
			}}},
		}
	}
	rows := []struct {
		reason  string
		session program.Session
		want    map[string]any
	}{
		{"it is evaluated", session("a", 1, "1", 1), map[string]any{"size": int64(1), "ready": int64(1)}},
		{"nothing that is visible changed: the last answer, though the content of this version differs", session("a", 1, "1", 9), map[string]any{"size": int64(1), "ready": int64(1)}},
		{"the live object has another version", session("a", 1, "2", 9), map[string]any{"size": int64(1), "ready": int64(9)}},
		{"the spec changed", session("a", 2, "2", 9), map[string]any{"size": int64(2), "ready": int64(9)}},
		{"another resource has its own", session("b", 3, "2", 9), map[string]any{"size": int64(3), "ready": int64(9)}},
		{"and the first is not forgotten", session("a", 2, "2", 0), map[string]any{"size": int64(2), "ready": int64(9)}},
	}
	for _, row := range rows {
		r, err := memo.Evaluate(row.session)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(row.want, r.Status); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.reason, diff)
		}
	}
}
