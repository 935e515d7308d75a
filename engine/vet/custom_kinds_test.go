package vet_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
	"operetta.dev/test/inline"
)

func TestObjectsOfCustomKindsAreCheckedAsAnAPIServerDoes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, schema, spec, want string }{
		"Plain":        {"what is there fits", `{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}`, `a: "x"`, ""},
		"Unknown":      {"the API server would drop it", `{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}`, `b: "x"`, "components.w.objects.c.spec.b: unknown field"},
		"Default":      {"the API server fills it in", `{type: object, properties: {spec: {type: object, required: [mode], properties: {mode: {type: string, default: fast}, a: {type: string}}}}}`, `a: "x"`, ""},
		"Required":     {"nobody fills it in", `{type: object, properties: {spec: {type: object, required: [mode], properties: {mode: {type: string}, a: {type: string}}}}}`, `a: "x"`, "components.w.objects.c.spec.mode: required, but not set"},
		"InElements":   {"defaults of elements count, too", `{type: object, properties: {spec: {type: object, properties: {ports: {type: array, items: {type: object, required: [proto], properties: {number: {type: integer}, proto: {type: string, default: TCP}}}}}}}}`, `ports: [{number: 1}]`, ""},
		"Alternatives": {"which fields go together is not tried", `{type: object, properties: {spec: {type: object, oneOf: [{required: [a]}, {required: [b]}], minProperties: 1, properties: {a: {type: string}, b: {type: string}}}}}`, `a: "x"`, ""},
		"Names":        {"a field may be named as a keyword is", `{type: object, properties: {spec: {type: object, properties: {not: {type: string}, oneOf: {type: string}, required: {type: array, items: {type: string}}, properties: {type: string}}}}}`, `{not: "x", oneOf: "y", required: ["z"], properties: "p"}`, ""},
		"IntOrString":  {"both are right", `{type: object, properties: {spec: {type: object, properties: {a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}}}}`, `a: 1`, ""},
		"OpenObject":   {"the definition keeps what it does not know", `{type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`, `a: 1`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var definition map[string]any
			inline.Decode(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: a.example, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, schema: {openAPIV3Schema: `+tc.schema+`}}]}}`, &definition)
			kinds, err := vet.CustomKinds(definition)
			if err != nil || len(kinds) != 1 {
				t.Fatal(kinds, err)
			}
			s, err := source.Loader{Kinds: kinds}.Module("shop", "", "shop", fstest.MapFS{"shop/shop.cue": &fstest.MapFile{Data: []byte(`package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: {}
components: w: objects: c: {apiVersion: "a.example/v1", kind: "Widget", metadata: name: "w", spec: {` + tc.spec + `}}
`)}})
			if err != nil {
				t.Fatal(err)
			}
			p, _, err := program.LoadFaultyCheaply(s)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range vet.Examine(p, nil).Types(nil) {
				got += f.Text()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
