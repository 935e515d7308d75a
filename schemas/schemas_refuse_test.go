package schemas_test

import (
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"

	"operetta.dev/schemas"
	"operetta.dev/test/machine"
)

// A manifest is complete but for what a case adds to it.
const (
	deployment = `appsv1.#Deployment & {
		spec: {
			selector: matchLabels: app: "web"
			template: spec: containers: [{name: "web", image: "web:1"}]
		}
	}`
	service = `corev1.#Service & {spec: ports: [{port: 80}]}`
)

// refusals are manifests with something wrong, and where the types say so.
var refusals = map[string]struct {
	reason   string
	manifest string
	path     string // of the error
}{
	"NothingWrong": {
		reason:   "The manifest that the others are made of has to be right.",
		manifest: deployment,
	},
	"Typo": {
		reason:   "Types are closed.",
		manifest: deployment + ` & {spec: replcas: 3}`,
		path:     "spec.replcas",
	},
	"TypoFarBelow": {
		reason:   "So are the types of their fields.",
		manifest: deployment + ` & {spec: template: spec: containers: [{imagePullPolcy: "Always"}]}`,
		path:     "spec.template.spec.containers.0.imagePullPolcy",
	},
	"TypoInFlattenedStruct": {
		reason:   "A probe has the fields of its handler, and no others.",
		manifest: deployment + ` & {spec: template: spec: containers: [{livenessProbe: httpget: port: 80}]}`,
		path:     "spec.template.spec.containers.0.livenessProbe.httpget",
	},
	"TextForNumber": {
		reason:   "A number in quotes is no number.",
		manifest: deployment + ` & {spec: replicas: "3"}`,
		path:     "spec.replicas",
	},
	"NumberTooLarge": {
		reason:   "The API server would refuse what does not fit an int32.",
		manifest: deployment + ` & {spec: replicas: 3000000000}`,
		path:     "spec.replicas",
	},
	"MissingSelector": {
		reason:   "What Kubernetes requires has to be there.",
		manifest: `appsv1.#Deployment & {spec: template: {}}`,
		path:     "spec.selector",
	},
	"OtherKind": {
		reason:   "The kind of a type is its own.",
		manifest: deployment + ` & {kind: "StatefulSet"}`,
		path:     "kind",
	},
	"NoSuchValue": {
		reason:   "An enum has its values and no others.",
		manifest: service + ` & {spec: ports: [{protocol: "tcp"}]}`,
		path:     "spec.ports.0.protocol",
	},
	"NoQuantity": {
		reason:   "A quantity has the suffixes of Kubernetes.",
		manifest: deployment + ` & {spec: template: spec: containers: [{resources: limits: memory: "1 GB"}]}`,
		path:     "spec.template.spec.containers.0.resources.limits.memory",
	},
	"NumberForLabel": {
		reason:   "Labels are text.",
		manifest: service + ` & {metadata: labels: version: 1}`,
		path:     "metadata.labels.version",
	},
	"Null": {
		reason:   "Nobody writes null in a manifest.",
		manifest: service + ` & {metadata: labels: null}`,
		path:     "metadata.labels",
	},
}

func TestWrongManifestsAreRefused(t *testing.T) {
	machine.Serial(t)
	for name, tc := range refusals {
		t.Run(name, func(t *testing.T) {
			text := "package author\n" + `
				import appsv1 "operetta.dev/schemas/k8s/apps/v1"
				import corev1 "operetta.dev/schemas/k8s/core/v1"
				_used: [appsv1.#GroupName, corev1.#GroupName]
				manifest: ` + tc.manifest
			err := build(t, schemas.Full(), text).LookupPath(cue.ParsePath("manifest")).Validate(cue.Concrete(true))
			if got := paths(err); (tc.path == "") != (err == nil) || !strings.Contains(got, tc.path) {
				t.Errorf("%s\nerror at %q, want at %q: %v", tc.reason, got, tc.path, err)
			}
		})
	}
}

// paths returns where an error is, from the manifest on.
func paths(err error) string {
	var all []string
	for _, e := range errors.Errors(err) {
		all = append(all, strings.TrimPrefix(strings.Join(e.Path(), "."), "manifest."))
	}
	return strings.Join(all, " ")
}
