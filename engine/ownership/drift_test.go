package ownership_test

import (
	"strings"
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
	if field, manager := ownership.LostField(ownership.Desired{Manifest: fromYAML(t, manifest)}, live); field != "spec.type" || manager != "last" {
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
			if field, _ := ownership.LostField(want, fromYAML(t, row.live)); field != row.want {
				t.Errorf("%s: got %q, want %q", row.reason, field, row.want)
			}
		})
	}
}

// An apply takes away only what nothing but applies of the engine have written: the reference of anybody
// else has to be taken away by a write of its own, or the object would have two controllers.
func TestAnApplyDropsOnlyAReferenceThatTheEngineAloneHasApplied(t *testing.T) {
	t.Parallel()
	entry := func(manager, operation, fields string) string {
		return `{manager: ` + manager + `, operation: ` + operation + `, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: ` + fields + `}`
	}
	const reference, other = `{f:metadata: {f:ownerReferences: {'k:{"uid":"9"}': {}}}}`, `{f:spec: {f:size: {}}}`
	for name, row := range map[string]struct {
		reason  string
		entries []string
		want    bool
	}{
		"the engine has applied it":          {"an apply without it takes it away", []string{entry("operetta", "Apply", reference)}, true},
		"the engine has updated it":          {"an apply takes away what an apply has written", []string{entry("operetta", "Update", reference)}, false},
		"another has applied it":             {"it is for that one to take away", []string{entry("boss", "Apply", reference)}, false},
		"another has updated it":             {"as before", []string{entry("boss", "Update", reference)}, false},
		"another has applied it as well":     {"it stays as long as one of them wants it", []string{entry("operetta", "Apply", reference), entry("boss", "Apply", reference)}, false},
		"another has applied something else": {"that is no reference", []string{entry("operetta", "Apply", reference), entry("boss", "Apply", other)}, true},
		"nobody has written it":              {"there is nothing to take away", []string{entry("operetta", "Apply", other)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := fromYAML(t, `{apiVersion: v1, kind: Thing, metadata: {name: a, managedFields: [`+strings.Join(row.entries, ", ")+`]}}`)
			if got := ownership.ApplyRemovesOwnerReference(live, "9"); got != row.want {
				t.Errorf("%s: got %t, want %t", row.reason, got, row.want)
			}
		})
	}
}

// What is remembered to be in sync is known by its digest. Manifests without one all look the same.
func TestAManifestWithoutADigestIsComparedEachTime(t *testing.T) {
	t.Parallel()
	live := fromYAML(t, `{apiVersion: v1, kind: Thing, metadata: {name: a, managedFields: [
{manager: operetta, operation: Apply, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:spec: {f:size: {}}}}]}}`)
	ownership.CompactManagedFields(live)
	for _, row := range []struct{ reason, spec, want string }{
		{"it is as it was applied", `{size: 1}`, ""},
		{"nobody has applied the second field", `{size: 1, type: b}`, "spec.type"},
	} {
		want := ownership.Desired{Manifest: fromYAML(t, `{apiVersion: v1, kind: Thing, metadata: {name: a}, spec: `+row.spec+`}`)}
		if field, _ := ownership.LostField(want, live); field != row.want {
			t.Errorf("%s: %q is lost, want %q", row.reason, field, row.want)
		}
	}
}
