package program_test

import (
	"strings"
	"testing"

	"operetta.dev/engine/program"
	"operetta.dev/test/golden"
	"operetta.dev/test/inline"
)

func TestAnInputThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	p := compile(t, `
inputs: credentials: {apiVersion: "v1", kind: "Secret", name: "\(cr.metadata.name)-db"}
inputs: settings: {apiVersion: "v1", kind: "ConfigMap", name: "settings", namespace: "other"}
components: web: {
	requires: given: inputs.credentials.object.data.password != _|_
	requires: both: inputs.credentials.object.data.password != _|_ && inputs.credentials.object.data.user != _|_
	requires: long: inputs.credentials.object.data.password != ""
	objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c", data: {color: inputs.settings.object.data.color, "a-b": inputs.credentials.object.data["a-b"]}}
}
`)
	const nothing = "Secret town/corner-db (input credentials) does not exist"
	for name, c := range map[string]struct {
		reason, inputs string
		want           []string
	}{
		"neither object": {
			"that it does not exist is no secret", `{}`,
			[]string{
				"given: False: inputs.credentials.object.data.password != _|_: inputs.credentials.object is not there yet: " + nothing,
				"is not there yet: " + nothing + " (shop/shop.cue:18)", "long: Unknown: inputs.credentials.object.data.password != \"\": inputs.credentials.object is not there yet: " + nothing,
				"inputs.settings.object is not there yet: ConfigMap other/settings (input settings) does not exist (shop/shop.cue:20)",
			},
		},
		"not the keys": {
			"nor is which keys there are", `{credentials: {objects: [{kind: Secret, metadata: {name: corner-db}, data: {user: eA==}}]}, settings: {objects: [{data: {}}]}}`,
			[]string{
				"given: False: inputs.credentials.object.data.password != _|_: inputs.credentials.object.data.password is not there yet: Secret town/corner-db (input credentials) has no key password",
				`has no key "a-b" (shop/shop.cue:20)`, "ConfigMap other/settings (input settings) has no key color",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := program.Session{CR: resource(t, `{}`)}
			inline.Decode(t, []byte(c.inputs), &s.Inputs)
			said := golden.Rollout(evaluate(t, p, s))
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("%s: it does not say %s:\n%s", c.reason, want, said)
				}
			}
		})
	}
}
