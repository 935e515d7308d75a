package schemas_test

import (
	"testing"

	"cuelang.org/go/cue"
)

// author is a package as the tutorial has it: the contract, the types and the predicates together.
const author = `package author

import (
	appsv1 "operetta.dev/schemas/k8s/apps/v1"
	corev1 "operetta.dev/schemas/k8s/core/v1"
	"operetta.dev/schemas/health"
	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "example.com"
kind:  "WebApp"
versions: v1: spec: #Spec

#Spec: {
	image!:   string
	replicas: int & >=0 & <=100 | *3
}

cr: spec: #Spec
live: _

components: web: {
	objects: deployment: appsv1.#Deployment & {
		metadata: name: cr.metadata.name
		spec: {
			replicas: cr.spec.replicas
			selector: matchLabels: app: cr.metadata.name
			template: {
				metadata: labels: app: cr.metadata.name
				spec: containers: [{name: "web", image: cr.spec.image}]
			}
		}
	}
	objects: service: corev1.#Service & {
		metadata: name: cr.metadata.name
		spec: ports: [{port: 80}]
	}
	verify: (health.#Deployment & {object: live.web.deployment}).checks
	verify: reachable: (health.#Service & {object: live.web.service}).ready
	failed: stuck: (health.#Deployment & {object: live.web.deployment}).failed
}
`

func TestPackageOfAnAuthor(t *testing.T) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			fresh := build(t, form(), author)
			if err := fresh.Validate(); err != nil {
				t.Fatalf("a package that nothing was filled into does not validate: %v", err)
			}
			filled := fresh.FillPath(cue.ParsePath("cr"), map[string]any{
				"apiVersion": "example.com/v1", "kind": "WebApp",
				"metadata": map[string]any{"name": "shop"},
				"spec":     map[string]any{"image": "web:1"},
			})
			web := filled.LookupPath(cue.ParsePath("components.web"))
			if err := web.LookupPath(cue.ParsePath("objects")).Validate(cue.Concrete(true)); err != nil {
				t.Errorf("the objects are not complete: %v", err)
			}
			if got := verdict(web.LookupPath(cue.ParsePath("verify.observed"))); got != isUnknown {
				t.Errorf("before there is a Deployment, verify.observed is %s", got)
			}
			if got := verdict(web.LookupPath(cue.ParsePath("failed.stuck"))); got != isUnknown {
				t.Errorf("before there is a Deployment, failed.stuck is %s", got)
			}

			live := map[string]any{"web": map[string]any{
				"deployment": rolledOut("Deployment", 1), "service": rolledOut("Service", 1),
			}}
			verify := filled.FillPath(cue.ParsePath("live"), live).LookupPath(cue.ParsePath("components.web.verify"))
			predicates, err := verify.Fields()
			if err != nil {
				t.Fatal(err)
			}
			for predicates.Next() {
				if got := verdict(predicates.Value()); got != isTrue {
					t.Errorf("once it is rolled out, verify.%s is %s", predicates.Selector(), got)
				}
			}
		})
	}
}
