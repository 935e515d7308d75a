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
	want   string
}{
	"NothingWrong": {
		"A rule sees what is filled in for {}, at any depth, and in the definition as well.",
		`{
	@crd(rule="self.topics.all(t, t.replicas <= self.brokers) && self.log.keep.days > 0")
	brokers: int | *3
	topics: [...{name!: string, replicas: int | *1}]
	log: keep: days: int | *7
}`, "",
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
}`, ``,
	},
	"RuleDoesNotCompile": {
		"It is the rule that is wrong, and not the default that it is tried on.",
		`{
	name: string | *"x" @crd(rule="self.lenght() > 1")
	deep: list: [...{
		@crd(rule="self.nosuch > 1")
		c: int | *1
	}]
}`, ``,
	},
	"RuleThatCostsTooMuch": {
		"A map without a limit may be of any size.",
		`{
	env?: [string]: [...string @crd(rule="self.matches('^(a|b)*$')")]
}`, ``,
	},
	"SeveralAtOnce": {
		"Every fault is said at once.",
		`{
	a: int | *1 @crd(rule="self > 1", message="more than one")
	b: int | *1 @crd(rule="self.size() > 1")
	c?: {x?: int} @crd(rule="self.y > 1")
}`, ``,
	},
}

func TestRefused(t *testing.T) {
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
			if err := crd.Refused(def, errs); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(strings.TrimSpace(tc.want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
