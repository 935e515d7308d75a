package testcase_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"operetta.dev/engine/testcase"
)

// header begins a package of these tests.
const header = `package shop
import "operetta.dev/schemas/operator"
operator.#Controller
group: "example.com", kind: "Shop"
versions: v1: spec: #Spec
#Spec: {size: int | *1, on: bool | *true}
cr: spec: #Spec
live: _
#CM: {apiVersion: "v1", kind: "ConfigMap", metadata: name: string, data: {...}}
`

// TestExplorePlaysEverySchedule has packages whose end depends on the way, and such whose end does not.
func TestExplorePlaysEverySchedule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason   string
		program  string
		steps    string
		schedule string
		want     []string
	}{
		"a package that decides from the spec alone": {
			reason:  "no crash, no lost response and no order changes anything",
			program: `components: {a: objects: o: #CM & {metadata: name: "a", data: size: "\(cr.spec.size)"}, b: {dependsOn: a: {}, when: cr.spec.on, objects: o: #CM & {metadata: name: "b"}}}`,
			steps:   `{cr: spec: size: 2}, {cr: spec: on: false}, {live: a: o: null}, {delete: true}`,
		},
		"a value that remembers what was there first": {
			reason:   "after a crash between two writes the operator sees what it did not see before, and then the value is ambiguous",
			program:  `inputs: a: {apiVersion: "v1", kind: "ConfigMap", name: "a"}` + "\n" + `components: {a: objects: o: #CM & {metadata: name: "a"}, b: objects: o: #CM & {metadata: name: "b", data: first: *live.b.o.data.first | (*inputs.a.object.kind | "nobody")}}`,
			schedule: "step 0: crash after write 2",
			want: []string{
				"the custom resource is not ready, and ready without that", "component b is Waiting, and Verified without that",
				"ConfigMap default/b does not exist", "ConfigMap default/b was created 0 times, and 1 times without that",
			},
		},
		"a value that remembers the first spec": {
			reason:   "a second change before the first was written leaves another value",
			program:  `components: a: objects: o: #CM & {metadata: name: "a", data: first: *live.a.o.data.first | "\(cr.spec.size)"}`,
			steps:    `{}, {cr: spec: size: 2}`,
			schedule: "step 0: crash after write 1, away until the next step",
			want:     []string{`ConfigMap default/a ends otherwise: data.first: "1" -> "2"`},
		},
		"a hook runs as often": {
			reason:  "a migration that ran twice would be a difference",
			program: `hooks: afterVerify: tell: objects: o: #CM & {metadata: name: "told-\(cr.spec.size)"}` + "\n" + `components: a: objects: o: #CM & {metadata: name: "a", data: size: "\(cr.spec.size)"}`,
			steps:   `{}, {cr: spec: size: 2}`,
		},
		"a Secret is not shown": {
			reason:   "it is said that it differs, and not what it is",
			program:  `components: a: objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "a", data: first: *live.a.o.data.first | {"1": "c3dvcmRmaXNo", "2": "aHVudGVyMg=="}["\(cr.spec.size)"]}`,
			steps:    `{}, {cr: spec: size: 2}`,
			schedule: "step 0: crash after write 1, away until the next step",
			want:     []string{`Secret default/a ends otherwise: data.first: *** -> *** (another)`},
		},
		"a change of what is not there yet": {
			reason:  "a step that cannot begin so early is no schedule",
			program: `components: {a: objects: o: #CM & {metadata: name: "a"}, b: {dependsOn: a: {}, objects: o: #CM & {metadata: name: "b", data: x: "y"}}}`,
			steps:   `{}, {live: b: o: data: x: "z"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, tests := loadTests(t, header+c.program, "package shop\n\ntests: t: {given: cr: spec: {}, steps: ["+c.steps+"]}\n")
			found, err := testcase.Explore(t.Context(), p, tests, testcase.ExploreOptions{Bound: 10000})
			if err != nil {
				t.Fatal(err)
			}
			e := found[0]
			if e.Error != "" || e.Schedule != c.schedule {
				t.Errorf("%s: schedule %q, error %q, want %q\n%s", c.reason, e.Schedule, e.Error, c.schedule, strings.Join(e.Trace, "\n"))
			}
			if diff := cmp.Diff(c.want, e.Differences, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: differences (-want +got):\n%s", c.reason, diff)
			}
			t.Logf("%d of %d schedules, %d impossible", e.Tried, e.All, e.Impossible)
			if c.schedule == "" {
				return
			}
			again, err := testcase.Explore(t.Context(), p, tests, testcase.ExploreOptions{Schedule: c.schedule})
			if err != nil || again[0].Tried != 1 {
				t.Fatal(err, again)
			}
			if diff := cmp.Diff(e.Differences, again[0].Differences); diff != "" {
				t.Errorf("played by its name, the schedule ends in another way:\n%s", diff)
			}
		})
	}
}
