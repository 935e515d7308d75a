package crd_test

import (
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
)

// refusals are schemas that have a CustomResourceDefinition, which the API server refuses.
var refusals = map[string]struct {
	reason string
	spec   string
	want   []string
}{
	"NothingWrong": {
		"A rule sees what is filled in for {}, at any depth, and in the definition as well.",
		`{
	@crd(rule="self.topics.all(t, t.replicas <= self.brokers) && self.log.keep.days > 0")
	brokers: int | *3
	topics: [...{name!: string, replicas: int | *1}]
	log: keep: days: int | *7
}`, nil,
	},
	"DefaultBreaksItsRule": {
		"The default of a struct is part of those around it, and is wrong once.",
		`{
	window: {
		@crd(rule="self.min <= self.max", message="min is at most max")
		min: int | *5
		max: int | *1
	}
	other: {
		@crd(rule="self.a == self.a")
		a: int | *1
	}
	@crd(rule="has(self.window)")
}`, []string{
			`input.cue:2: versions.v1.spec.window: the API server refuses it in a CustomResourceDefinition: the default: min is at most max`,
		},
	},
	"RuleDoesNotCompile": {
		"It is the rule that is wrong, and not the default that it is tried on.",
		`{
	name: string | *"x" @crd(rule="self.lenght() > 1")
	deep: list: [...{
		@crd(rule="self.nosuch > 1")
		c: int | *1
	}]
}`, []string{
			`input.cue:2: versions.v1.spec.name: the API server refuses it in a CustomResourceDefinition: the rule "self.lenght() > 1": compilation failed: ERROR: <input>:1:12: undeclared reference to 'lenght' (in container '')`,
			`input.cue:4: versions.v1.spec.deep.list.[_]: the API server refuses it in a CustomResourceDefinition: the rule "self.nosuch > 1": compilation failed: ERROR: <input>:1:5: undefined field 'nosuch'`,
		},
	},
	"RuleOverWhatHasALimitByDefault": {
		"A map whose author gave no limit has one, so that rules over it have a price.",
		`{
	env?: [string]: string @crd(immutable)
	@crd(rule="!has(self.hosts) || self.hosts.all(h, h.matches('^[a-z.]+$'))")
	hosts?: [...string]
	parts?: [...{config?: {[string]: int} @crd(rule="self.all(k, self[k] > 0)")}]
}`, nil,
	},
	"RuleThatCostsTooMuch": {
		"A map of maps of texts may be of a size that no rule has the time for.",
		`{
	env?: [string]: [string]: string @crd(rule="self.matches('^([a-z]+)[.]([a-z]+)[.]([a-z]+)[.]([a-z]+)[.]([a-z]+)[.]([a-z]+)[.]([a-z]+)[.]([a-z]+)[.]([a-z]+)[.]([a-z]+)[.]([a-z]+)[.]([a-z]+)$')")
}`, []string{
			`input.cue:1: versions.v1: the API server refuses it in a CustomResourceDefinition: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of 17.7x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`,
			`input.cue:2: versions.v1.spec.env.[string].[string]: the API server refuses it in a CustomResourceDefinition: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`,
		},
	},
	"SeveralAtOnce": {
		"Every fault is said at once.",
		`{
	a: int | *1 @crd(rule="self > 1", message="more than one")
	b: int | *1 @crd(rule="self.size() > 1")
	c?: {x?: int} @crd(rule="self.y > 1")
}`, []string{
			`input.cue:2: versions.v1.spec.a: the API server refuses it in a CustomResourceDefinition: the default: more than one`,
			`input.cue:3: versions.v1.spec.b: the API server refuses it in a CustomResourceDefinition: the rule "self.size() > 1": compilation failed: ERROR: <input>:1:10: found no matching overload for 'size' applied to 'int.()'`,
			`input.cue:4: versions.v1.spec.c: the API server refuses it in a CustomResourceDefinition: the rule "self.y > 1": compilation failed: ERROR: <input>:1:5: undefined field 'y'`,
		},
	},
}

func TestLocateErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := cuecontext.New().CompileString("#Spec: "+tc.spec, cue.Filename("input.cue"))
			def := definitionOf(input)
			generated, err := crd.Generate(def)
			if err != nil {
				t.Fatal(err)
			}
			errs, err := conform.Errors(generated)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := crd.LocateErrors(def, errs); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(strings.Join(tc.want, "\n"), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
