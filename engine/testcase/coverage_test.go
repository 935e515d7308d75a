package testcase_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/testcase"
)

// TestCoverageNamesWhatNoTestHasSeen has a package with each kind of thing that a test can see, by what a test gives.
func TestCoverageNamesWhatNoTestHasSeen(t *testing.T) {
	t.Parallel()
	const program = header + `
components: a: {
	objects: {o: #CM & {metadata: name: "a"}, if cr.spec.size > 1 {more: #CM & {metadata: name: "more"}}}
	verify: there: live.a.o.metadata.name == "a"
}
inputs: settings: {apiVersion: "v1", kind: "ConfigMap", name: "settings"}
components: c: objects: o: #CM & {metadata: name: "c", data: mode: *inputs.settings.object.data.mode | "none"}
components: b: {when: cr.spec.on, objects: o: #CM & {metadata: name: "b"}}
hooks: afterVerify: tell: objects: o: #CM & {metadata: name: "told"}
hooks: beforeDelete: note: objects: o: #CM & {metadata: name: "noted"}
hooks: beforeDelete: keep: {when: cr.spec.on, objects: job: {
	apiVersion: "batch/v1"
	kind:       "Job"
	metadata: name: "keep"
	spec: template: spec: {restartPolicy: "Never", containers: [{name: "keep", image: "keep:1"}]}
}}
`
	for name, c := range map[string]struct {
		reason, test string
		want         []string
	}{
		"a test of one decision": {
			reason: "nothing is there yet, and nothing is healthy",
			test:   `given: cr: spec: {}`,
			want: []string{
				"components.a.objects.more is rendered", "components.a.verify.there is True", "components.b.when is not True", "hooks.afterVerify.tell runs",
				"hooks.beforeDelete.note runs", "hooks.beforeDelete.keep runs", "spec.on is false", "spec.size is 0", "spec.size is 2",
			},
		},
		"a test with steps": {
			reason: "each step shows more",
			test:   `given: cr: spec: {}, steps: [{}, {cr: spec: {on: false, size: 2}}]`,
			want:   []string{"hooks.beforeDelete.note runs", "hooks.beforeDelete.keep runs", "spec.size is 0"},
		},
		"a test that deletes the resource": {
			reason: "hooks before deletion run in the step after which the resource is gone",
			test:   `given: cr: spec: {}, steps: [{}, {cr: spec: {on: false, size: 2}}, {cr: spec: on: true}, {delete: true, want: gone: true}]`,
			want:   []string{"spec.size is 0"},
		},
		"a deletion that has gone on without the hooks": {
			reason: "hooks before deletion that the resource does not want never run",
			test:   `given: cr: spec: {on: false}, steps: [{}, {delete: true, want: gone: true}]`,
			want: []string{
				"components.b is rolled out", "components.a.objects.more is rendered", "components.b.objects.o is rendered", "components.b.when is True",
				"hooks.beforeDelete.keep runs", "spec.on is left out", "spec.size is 0", "spec.size is 2",
			},
		},
		"a resource that is invalid": {
			reason: "what was refused was not tried",
			test:   `given: cr: spec: {on: false, size: "x"}, want: error: "size"`,
			want: []string{
				"components.a is rolled out", "components.c is rolled out", "components.b is rolled out", "components.a.objects.o is rendered", "components.a.objects.more is rendered",
				"components.c.objects.o is rendered", "components.b.objects.o is rendered", "components.a.verify.there is True", "components.a.verify.there is not True",
				"components.b.when is True", "components.b.when is not True", "hooks.afterVerify.tell runs",
				"hooks.beforeDelete.note runs", "hooks.beforeDelete.keep runs", "spec.on is left out", "spec.on is false", "spec.size is left out", "spec.size is 0", "spec.size is 2",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, tests := loadTests(t, program, "package shop\n\ntests: t: {want: {}, "+c.test+"}\n")
			results, points, err := testcase.Run(t.Context(), p, tests)
			if err != nil || len(results[0].Differences) > 0 {
				t.Fatal(err, results)
			}
			var got []string
			for _, point := range points {
				if !point.Covered {
					got = append(got, point.String())
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: not covered (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
