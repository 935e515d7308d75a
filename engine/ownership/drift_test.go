package ownership_test

import (
	"testing"

	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// The API server does not sort managedFields by time.
func TestOfSeveralWritersTheLastIsNamed(t *testing.T) {
	t.Parallel()
	live := fromYAML(t, `{apiVersion: v1, kind: Service, metadata: {name: a, managedFields: [
{manager: operetta, operation: Apply, time: "2026-01-01T00:00:01Z", fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: {f:selector: {}}}},
{manager: last, operation: Update, time: "2026-01-01T00:00:03Z", fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: {f:sessionAffinity: {}}}},
{manager: earlier, operation: Update, time: "2026-01-01T00:00:02Z", fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: {f:clusterIP: {}}}}]}}`)
	manifest := `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP}}`
	if field, manager := ownership.Lost(ownership.Desired{Manifest: fromYAML(t, manifest)}, live); field != "spec.type" || manager != "last" {
		t.Errorf("got %q by %q", field, manager)
	}
}

func TestLostFieldsOfListsAndReplacements(t *testing.T) {
	t.Parallel()
	const (
		start = `{apiVersion: v1, kind: Thing, metadata: {name: a, managedFields: [`
		apply = `{manager: operetta, operation: Apply, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: `
		other = `{manager: operetta, operation: Update, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: `
		end   = `}}`
	)
	for name, row := range map[string]struct {
		reason, live, manifest, policy, want string
	}{
		"all items of a set": {
			"each is owned by its value", start + apply + `{f:names: {'v:"a"': {}, 'v:"b"': {}}}` + end + `]}}`,
			`{names: [a, b]}`, "ssa", "",
		},
		"an item of a set": {
			"the second one is nobody's", start + apply + `{f:names: {'v:"a"': {}}}` + end + `]}}`,
			`{names: [a, b]}`, "ssa", "spec.names[1]",
		},
		"an item of a list with keys": {
			"no item has that key", start + apply + `{f:ports: {'k:{"port":80}': {".": {}, f:port: {}}}}` + end + `]}}`,
			`{ports: [{port: 80}, {port: 81}]}`, "ssa", "spec.ports[1]",
		},
		"a value in a list with keys": {
			"no value has a key", start + apply + `{f:ports: {'k:{"port":80}': {".": {}, f:port: {}}}}` + end + `]}}`,
			`{ports: [80]}`, "ssa", "spec.ports[0]",
		},
		"nothing that the engine has applied": {
			"an update of it is none of the apply's fields", start + other + `{f:size: {}}` + end + `]}}`,
			`{size: 1}`, "ssa", "every field",
		},
		"a replaced object": {
			"it was applied, and later replaced, and owns what either wrote",
			start + apply + `{f:size: {}}` + end + `, ` + other + `{f:type: {}}` + end + `]}}`,
			`{size: 1, type: b}`, "replace", "",
		},
		"a replaced object that is applied": {
			"what an update wrote is not owned by an apply",
			start + apply + `{f:size: {}}` + end + `, ` + other + `{f:type: {}}` + end + `]}}`,
			`{size: 1, type: b}`, "ssa", "spec.type",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := ownership.Desired{
				Manifest: fromYAML(t, `{apiVersion: v1, kind: Thing, metadata: {name: a}, spec: `+row.manifest+`}`),
				Policy:   program.Policy{Apply: row.policy},
			}
			if field, _ := ownership.Lost(want, fromYAML(t, row.live)); field != row.want {
				t.Errorf("%s: got %q, want %q", row.reason, field, row.want)
			}
		})
	}
}
