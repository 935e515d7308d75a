package crd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"operetta.dev/engine/crd"
)

func TestADefinitionIsNarrowerIfResourcesMayLoseSomething(t *testing.T) {
	t.Parallel()
	const (
		old   = `{type: object, properties: {spec: {type: object, properties: {old: {type: string}, size: {type: integer, maximum: 9}, list: {type: array, items: {type: string}}}}, status: {type: object, properties: {a: {type: string}}}}}`
		whole = `{type: object, required: [spec], properties: {spec: {type: object}, status: {type: object}}}`
	)
	for name, tc := range map[string]struct{ reason, present, next, want string }{
		"Same":       {"nothing changes", old, old, ""},
		"Wider":      {"all resources are within it", old, `{type: object, properties: {spec: {type: object, properties: {old: {type: string, description: other, default: x}, more: {type: string}, size: {type: integer, maximum: 10}, list: {type: array, items: {type: string}}}}}}`, ""},
		"Status":     {"the operator writes it anew", old, `{type: object, properties: {spec: {type: object, properties: {old: {type: string}, size: {type: integer, maximum: 9}, list: {type: array, items: {type: string}}}}, status: {type: object}}}`, ""},
		"Rule":       {"the API server asks it about what changes alone", old, `{type: object, properties: {spec: {type: object, x-kubernetes-validations: [{rule: "self.size > 3"}], properties: {old: {type: string}, size: {type: integer, maximum: 9}, list: {type: array, items: {type: string}}}}}}`, ""},
		"Field":      {"it would be dropped", old, `{type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 9}, list: {type: array, items: {type: string}}}}}}`, "v1.spec.old does not exist any more"},
		"Bound":      {"a value may be beyond it", old, `{type: object, properties: {spec: {type: object, properties: {old: {type: string}, size: {type: integer, maximum: 8}, list: {type: array, items: {type: string}}}}}}`, "v1.spec.size is narrower: maximum or minimum"},
		"Set":        {"an element may be there twice", old, `{type: object, properties: {spec: {type: object, properties: {old: {type: string}, size: {type: integer, maximum: 9}, list: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}}}`, "v1.spec.list is narrower: the kind of its elements"},
		"AnySpec":    {"a resource may have none", `{type: object, properties: {spec: {type: object}}}`, whole, "v1.spec is required"},
		"AnyElement": {"anything may be there", `{type: object, properties: {spec: {type: object, additionalProperties: true}}}`, `{type: object, properties: {spec: {type: object, additionalProperties: {type: string}}}}`, "v1.spec has another form"},
		"StillAny":   {"", `{type: object, properties: {spec: {type: object, additionalProperties: true}}}`, `{type: object, properties: {spec: {type: object, additionalProperties: true}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []crd.Narrowed
			if tc.want != "" {
				want = []crd.Narrowed{{Version: "v1", Why: tc.want}}
			}
			present, next := definitionWith(t, tc.present, true), definitionWith(t, tc.next, true)
			if diff := cmp.Diff(want, crd.NarrowedVersions(present, next)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if (crd.LossDigest(present) == crd.LossDigest(next)) != (name == "Same" || name == "StillAny") {
				t.Error("what is accepted of one definition is accepted of another one")
			}
		})
	}
}

func TestAVersionThatNobodyHasWrittenInIsNotNarrower(t *testing.T) {
	t.Parallel()
	wide, narrow := `{type: object, properties: {spec: {type: object, properties: {old: {type: string}}}}}`, `{type: object, properties: {spec: {type: object}}}`
	for name, tc := range map[string]struct {
		reason string
		change func(present, next *apiextensionsv1.CustomResourceDefinition)
		want   int
	}{
		"Unserved": {"nobody has ever written in it", func(_, _ *apiextensionsv1.CustomResourceDefinition) {}, 0},
		"Stored":   {"resources are stored in it", func(p, _ *apiextensionsv1.CustomResourceDefinition) { p.Status.StoredVersions = []string{"v1"} }, 1},
		"Gone": {"that is for CheckStored", func(p, n *apiextensionsv1.CustomResourceDefinition) {
			p.Spec.Versions[0].Served, n.Spec.Versions = true, nil
		}, 0},
		"Anything": {"resources may have anything without a schema", func(p, _ *apiextensionsv1.CustomResourceDefinition) {
			p.Spec.Versions[0].Served, p.Spec.Versions[0].Schema = true, nil
		}, 1},
	} {
		present, next := definitionWith(t, wide, false), definitionWith(t, narrow, false)
		tc.change(present, next)
		if got := crd.NarrowedVersions(present, next); len(got) != tc.want {
			t.Errorf("%s: %s: %v are narrower", name, tc.reason, got)
		}
	}
}
