package testcase_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/testcase"
)

// TestUpdateReplacesLiteralsAndNothingElse has tests that want something else, with the tests that Update makes of them.
func TestUpdateReplacesLiteralsAndNothingElse(t *testing.T) {
	t.Parallel()
	const given = `given: cr: spec: name: "ann"`
	for name, c := range map[string]struct {
		reason, test, want string
		replaced           int
	}{
		"a text": {"it is what differs", `want: objects: data: cm: data: name: "bob" // who`, `want: objects: data: cm: data: name: "ann" // who`, 1},
		"a flag": {"true and false are literals", `want: objects: data: cm: immutable: true`, ``, 0},
		"two on one line": {
			"each is found by its path", `want: objects: data: {cm: data: {name: "bob", size: "7"}}`, `want: objects: data: {cm: data: {name: "ann", size: "1"}}`, 2,
		},
		"the same name twice on one line": {
			"the longer path decides", `want: {objects: data: cm: data: name: "bob", status: seen: "name"}`, `want: {objects: data: cm: data: name: "ann", status: seen: "never"}`, 2,
		},
		"a list of another length": {
			"it is replaced as a whole", `want: objects: data: list: spec: ports: [{port: 80, name: "a"}]`,
			"want: objects: data: list: spec: ports: [{\n\t\tname: \"a\"\n\t\tport: 80\n\t}, {\n\t\tname: \"b\"\n\t\tport: 81\n\t}]", 1,
		},
		"an element of a list": {
			"only the element differs", `want: objects: data: list: spec: ports: [{port: 80}, {port: 82}]`, `want: objects: data: list: spec: ports: [{port: 80}, {port: 81}]`, 1,
		},
		"a phase":                 {"it is a literal like another", `want: phase: "Ready" // at once`, `want: phase: "Reconciling" // at once`, 1},
		"a choice of phases":      {"somebody has thought about it", `want: phase: "Ready" | "Waiting"`, ``, 0},
		"a constraint":            {"somebody has thought about it", `want: objects: data: cm: data: name: =~"^b"`, ``, 0},
		"a reference":             {"it stands for more than this test", `want: objects: data: cm: data: name: _who` + "\n_who: \"bob\"", ``, 0},
		"the content of a Secret": {"it would be in the repository then", `want: objects: data: secret: stringData: password: "hunter2"`, ``, 0},
		"a step": {
			"its number is a part of the path", `want: {}, steps: [{}, {cr: spec: size: 3, want: {live: data: cm: data: size: "7", writes: updated: 9}}]`,
			`want: {}, steps: [{}, {cr: spec: size: 3, want: {live: data: cm: data: size: "3", writes: updated: 1}}]`, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "package shop\n\ntests: t: {\n\t" + given + "\n\t" + c.test + "\n}\n"
			results := run(t, text)
			got, replaced, err := testcase.Update("shop_test.cue", []byte(text), results[0].Differences)
			if err != nil {
				t.Fatal(err)
			}
			want := text
			if c.want != "" {
				want = strings.ReplaceAll(text, c.test, c.want)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" || replaced != c.replaced {
				t.Errorf("%s: %d replaced, want %d (-want +got):\n%s\n%v", c.reason, replaced, c.replaced, diff, results[0].Differences)
			}
		})
	}
}
